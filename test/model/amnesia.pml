/* Stores that lose everything: first start, numbered incarnations and re-admission of one register on three
   stores, with two possible owners (PROTOCOL B3, C1-C3; src/ownership/seat.cc, seat_commit.cc, replica.cc,
   Host::number_store).

   A wiped store comes back empty, without a vote, numbered one above what its peers durably noted. An owner
   re-admits it when its own prepare announced that number and had its majority without it; it copies every
   record that a majority has. FRESH: the register has never been started. Every bucket has one token, so a
   record, once there, says "spent" for ever, and one bit tells it; versions are register.pml's matter. An
   owner touches what buckets it likes, so records lie dormant through any number of epochs. Epochs do not
   grow with starting time, messages may come late (LATE), owners stop anywhere or begin anew.

   C3 as it is modelled (README.md says why): joining a list is not voting. An owner that saw all stores of
   its list join, or a store that votes by that list, bids the others on it to vote (`begin`); a store that
   has joined and does not vote yet may join a later list.

   Invariant: the one token of a bucket is released once.

   Rules that can be removed: VOTE_ON_JOIN, START_WITH_MAJORITY (C3), NO_NUMBERS (every incarnation is number
   1), NO_DISCARD (promises of replaced stores count), NO_ANNOUNCE (admitted under an epoch begun before),
   VOTE_AT_ONCE (a wiped store votes), COPY_NEWEST (copies one store's records, not a majority's),
   COPY_TOUCHED (only what this owner has touched) (C2), NO_READ_FENCE (B3). */
#ifndef FRESH
#define FRESH 0
#endif
#ifndef K
#define K 1 /* buckets */
#endif
#ifndef EPOCHS
#define EPOCHS 3
#endif
#ifndef WIPES
#define WIPES 1
#endif
#ifndef LATE
#define LATE 0
#endif
#define R 3
#define NONE 7

#define MAJORITY(set) ((set) == 3 || (set) >= 5)
#define HAS(set, i) (((set) >> (i)) & 1)
#define MAX(a, b) ((a) > (b) -> (a) : (b))
#define MAY(r, e) (promise[r] <= (e))
#define LIST(a, b, c) ((a) + 4 * (b) + 16 * (c))
#ifdef VOTE_ON_JOIN
#define JOINABLE(r, l) (joined[r] == (l) || (joined[r] == 0 && !HAS(votes, r)))
#else
#define JOINABLE(r, l) (!HAS(votes, r))
#endif

/* The stores. */
byte number[R] = 1;
byte votes;       /* stores that vote */
byte joined[R];   /* the list of a first start; 0: none */
byte promise[R];
byte noted[R * R]; /* noted[r * R + n]: the number of store n as r has noted it */
byte records[R];  /* buckets whose token is spent */

byte spent;       /* ghost: buckets whose token was released */
byte wipes;

#if LATE
/* One message that comes late. */
mtype = { none, accept, install, join, begin };
mtype late = none;
byte late_store, late_epoch, late_number, late_records;
#define LATE_CLEAR late = none; late_store = 0; late_epoch = 0; late_number = 0; late_records = 0
#endif

/* The accept of buckets `what` by store r under epoch e. */
inline take(r, e, what) {
  promise[r] = e; records[r] = records[r] | what
}
#define ACCEPTS(r, e) (MAY(r, e) && HAS(votes, r))

inline admit(r, e, what) {
  promise[r] = e; records[r] = records[r] | what; votes = votes | (1 << r); joined[r] = 0;
  noted[r * R + r] = MAX(noted[r * R + r], number[r])
}

#ifdef NO_DISCARD
#define COUNTS(r) (HAS(promised, r))
#define HEARD_OF(r, n) known[n] = known[n]
#define IN_PLACE(r) (true)
#else
#define COUNTS(r) (HAS(promised, r) && promised_number[r] >= known[r])
#define HEARD_OF(r, n) known[n] = MAX(known[n], noted[(r) * R + (n)])
#define IN_PLACE(r) (number[r] >= known[r])
#endif
#define SET(a, b, c) (((a) -> 1 : 0) + ((b) -> 2 : 0) + ((c) -> 4 : 0))
/* Stores whose promises make an owner: those that vote, and those on the list by which another votes. */
#if FRESH && !defined(VOTE_ON_JOIN)
#define BEGUN_BY(r, l) (HAS(voting, r) && promised_list[r] == (l))
#define BEGUN(l) ((l) != 0 && (BEGUN_BY(0, l) || BEGUN_BY(1, l) || BEGUN_BY(2, l)))
#define BOUND(r) (COUNTS(r) && (HAS(voting, r) || BEGUN(promised_list[r])))
#else
#define BOUND(r) (COUNTS(r) && HAS(voting, r))
#endif
#define BOUND_SET SET(BOUND(0), BOUND(1), BOUND(2))
#ifdef VOTE_ON_JOIN
#define UNTOUCHED(r) (COUNTS(r) && !HAS(voting, r) && promised_list[r] == 0)
#else
#define UNTOUCHED(r) (COUNTS(r) && !HAS(voting, r))
#endif
#define UNTOUCHED_SET SET(UNTOUCHED(0), UNTOUCHED(1), UNTOUCHED(2))
#ifdef START_WITH_MAJORITY
#define ENOUGH_TO_START(set) MAJORITY(set)
#else
#define ENOUGH_TO_START(set) ((set) == NONE)
#endif
#ifdef NO_READ_FENCE
#define READABLE(r) (HAS(votes, r) && IN_PLACE(r))
#else
#define READABLE(r) (MAY(r, epoch) && HAS(votes, r) && IN_PLACE(r))
#endif
#ifdef NO_ANNOUNCE
#define LEARNS(r) (HAS(promised, r) && !HAS(voting, r))
#else
#define LEARNS(r) (HAS(promised, r) && !BOUND(r) && promised_number[r] == known[r] && announced[r] == known[r])
#endif

inline prepare(r) {
  promise[r] = epoch;
  for (n : 0 .. R - 1) {
    noted[r * R + n] = MAX(noted[r * R + n], announced[n]);
    HEARD_OF(r, n)
  }
  n = 0;
  promised = promised | (1 << r); promised_number[r] = number[r]; promised_list[r] = joined[r];
  voting = (voting & (NONE - (1 << r))) | (votes & (1 << r))
}

proctype Owner(bit self) {
  byte epoch, last, r, n;
  byte known[R], announced[R];          /* numbers of stores */
  byte promised, voting;                /* stores that have promised; those of them that vote */
  byte promised_number[R], promised_list[R];
  byte list;                            /* of the first start under way */
  byte reading = NONE, read_from, found; /* one bucket's record */
  byte seen;                            /* buckets this owner has read or committed */
  byte flying, accepted;                /* the commit under way */
  byte learner = NONE, scanned, copy;   /* the store that is taught */
  bool taught;                          /* `copy` has all that a majority has */

idle:
  atomic {
    last < EPOCHS;
    epoch = last + 1;
    do
    :: epoch < EPOCHS -> epoch++
    :: break
    od;
    epoch % 2 == self;
    last = epoch;
    if /* heartbeats have told it which stores there are, or not yet */
    :: for (n : 0 .. R - 1) { known[n] = MAX(known[n], number[n]) }
    :: true
    fi;
    for (n : 0 .. R - 1) { announced[n] = known[n] }
    n = 0
  }
  do
  :: atomic {
       if
       :: !HAS(promised, 0) || promised_number[0] < known[0] -> r = 0
       :: !HAS(promised, 1) || promised_number[1] < known[1] -> r = 1
       :: !HAS(promised, 2) || promised_number[2] < known[2] -> r = 2
       fi;
       MAY(r, epoch) -> prepare(r);
       r = 0;
       if
       :: MAJORITY(BOUND_SET) ->
#if FRESH && !defined(VOTE_ON_JOIN)
          if
          :: HAS(voting, 0) && promised_list[0] != 0 -> list = promised_list[0]
          :: HAS(voting, 1) && promised_list[1] != 0 -> list = promised_list[1]
          :: HAS(voting, 2) && promised_list[2] != 0 -> list = promised_list[2]
          :: else
          fi;
#endif
          goto owning
#if FRESH
       :: ENOUGH_TO_START(UNTOUCHED_SET) ->
          list = LIST(promised_number[0], promised_number[1], promised_number[2]); promised = 0;
          goto starting
#endif
       :: else
       fi }
#if FRESH
#ifdef VOTE_ON_JOIN
  /* A list of an earlier candidate is completed by those who have not joined it. */
  :: atomic {
       if
       :: HAS(promised, 0) && promised_list[0] != 0 -> n = promised_list[0]
       :: HAS(promised, 1) && promised_list[1] != 0 -> n = promised_list[1]
       :: HAS(promised, 2) && promised_list[2] != 0 -> n = promised_list[2]
       fi;
       if
       :: UNTOUCHED(0) -> r = 0
       :: UNTOUCHED(1) -> r = 1
       :: UNTOUCHED(2) -> r = 2
       fi;
       MAY(r, epoch) && JOINABLE(r, n) && ((n >> (2 * r)) & 3) == number[r] ->
       promise[r] = epoch; joined[r] = n; votes = votes | (1 << r);
       promised_list[r] = n; voting = voting | (1 << r);
       n = 0; r = 0 }
#endif
#endif
  :: atomic { last < EPOCHS -> goto again }
  od;

#if FRESH
starting:
  do
  :: atomic {
       if
       :: !HAS(promised, 0) -> r = 0
       :: !HAS(promised, 1) -> r = 1
       :: !HAS(promised, 2) -> r = 2
       fi;
       if
       :: MAY(r, epoch) && JOINABLE(r, list) && ((list >> (2 * r)) & 3) == number[r] ->
          promise[r] = epoch; joined[r] = list; promised_list[r] = list;
          promised = promised | (1 << r);
#ifdef VOTE_ON_JOIN
          votes = votes | (1 << r); voting = voting | (1 << r);
#endif
#if LATE
       :: late == none -> late = join; late_store = r; late_epoch = epoch; late_number = list
#endif
       fi;
       r = 0;
       if
       :: ENOUGH_TO_START(promised) -> goto owning
       :: else
       fi }
  :: atomic { last < EPOCHS -> goto again }
  od;
#endif

owning:
  do
#if FRESH && !defined(VOTE_ON_JOIN)
  /* Begin: the stores of the list vote. */
  :: atomic { list != 0 ->
       if
       :: !HAS(votes, 0) -> r = 0
       :: !HAS(votes, 1) -> r = 1
       :: !HAS(votes, 2) -> r = 2
       fi;
       if
       :: MAY(r, epoch) && joined[r] == list -> promise[r] = epoch; votes = votes | (1 << r); voting = voting | (1 << r)
#if LATE
       :: late == none -> late = begin; late_store = r; late_epoch = epoch; late_number = list
#endif
       fi; r = 0 }
#endif
  /* Prepare at a store that has not promised yet. */
  :: atomic { learner == NONE ->
       if
       :: !HAS(promised, 0) -> r = 0
       :: !HAS(promised, 1) -> r = 1
       :: !HAS(promised, 2) -> r = 2
       fi;
       MAY(r, epoch) && number[r] >= known[r] -> prepare(r);
       r = 0 }
  /* One bucket's record, from a majority of voters; nothing there: the token is granted and committed. */
  :: atomic { (learner == NONE || taught) && flying == 0;
       if
       :: reading != NONE
       :: reading == NONE && !HAS(seen, 0) -> reading = 0
#if K > 1
       :: reading == NONE && !HAS(seen, 1) -> reading = 1
#endif
       fi;
       if
       :: !HAS(read_from, 0) -> r = 0
       :: !HAS(read_from, 1) -> r = 1
       :: !HAS(read_from, 2) -> r = 2
       fi;
       READABLE(r);
#ifndef NO_READ_FENCE
       promise[r] = epoch;
#endif
       read_from = read_from | (1 << r);
       found = found | HAS(records[r], reading);
       r = 0;
       if
       :: MAJORITY(read_from) ->
          seen = seen | (1 << reading);
          if
          :: found == 0 -> flying = 1 << reading
          :: else
          fi;
          reading = NONE; read_from = 0; found = 0
       :: else
       fi }
  :: atomic { flying != 0 ->
       if
       :: !HAS(accepted, 0) -> r = 0
       :: !HAS(accepted, 1) -> r = 1
       :: !HAS(accepted, 2) -> r = 2
       fi;
       if
       :: ACCEPTS(r, epoch) ->
          take(r, epoch, flying);
          if
          :: IN_PLACE(r) -> accepted = accepted | (1 << r)
          :: else
          fi
#if LATE
       :: late == none -> late = accept; late_store = r; late_epoch = epoch; late_records = flying
#endif
       fi;
       r = 0;
       if
       :: MAJORITY(accepted) ->
          assert((spent & flying) == 0); /* the same token twice */
          spent = spent | flying; flying = 0; accepted = 0
       :: else
       fi }
  /* A store that promised without a vote is taught: its number was announced by this epoch's prepare,
     whose majority was without it. While it is taught, commits go on. */
  :: atomic { reading == NONE && !taught;
       if
       :: learner != NONE
       :: learner == NONE && LEARNS(0) -> learner = 0
       :: learner == NONE && LEARNS(1) -> learner = 1
       :: learner == NONE && LEARNS(2) -> learner = 2
       fi;
       if
       :: !HAS(scanned, 0) -> r = 0
       :: !HAS(scanned, 1) -> r = 1
       :: !HAS(scanned, 2) -> r = 2
       fi;
       READABLE(r);
#ifndef NO_READ_FENCE
       promise[r] = epoch;
#endif
       scanned = scanned | (1 << r); copy = copy | records[r];
#ifdef COPY_TOUCHED
       copy = copy & seen;
#endif
       r = 0;
       if
#ifdef COPY_NEWEST
       :: scanned != 0 -> taught = true; scanned = 0
#else
       :: MAJORITY(scanned) -> taught = true; scanned = 0
#endif
       :: else
       fi }
  :: atomic { taught ->
       if
       :: MAY(learner, epoch) && number[learner] == promised_number[learner] ->
          admit(learner, epoch, copy); voting = voting | (1 << learner)
#if LATE
       :: late == none ->
          late = install; late_store = learner; late_epoch = epoch;
          late_number = promised_number[learner]; late_records = copy
#endif
       fi;
       learner = NONE; taught = false; copy = 0 }
  :: atomic { last < EPOCHS -> goto again }
  od;

again:
  atomic {
    promised = 0; voting = 0; list = 0; reading = NONE; read_from = 0; found = 0; seen = 0; flying = 0;
    accepted = 0; learner = NONE; scanned = 0; copy = 0; taught = false;
    for (n : 0 .. R - 1) { promised_number[n] = 0; promised_list[n] = 0; announced[n] = 0 }
    n = 0;
    goto idle
  }
}

proctype Wipe() {
  byte r, n;
end:
  do
  :: atomic { wipes < WIPES -> wipes++;
       if /* stores are alike: the first wipe is of store 0, the second of that or another */
       :: r = 0
       :: wipes > 1 -> r = 1
       fi;
       records[r] = 0; promise[r] = 0; joined[r] = 0;
#ifdef VOTE_AT_ONCE
       votes = votes | (1 << r);
#else
       votes = votes & (NONE - (1 << r));
#endif
#ifndef NO_NUMBERS
       number[r] = MAX(noted[((r + 1) % R) * R + r], noted[((r + 2) % R) * R + r]) + 1;
#endif
       for (n : 0 .. R - 1) { noted[r * R + n] = 0 }
       n = 0; r = 0 }
  od
}

#if LATE
proctype Late() {
end:
  do
  :: atomic { late == accept ->
       if
       :: ACCEPTS(late_store, late_epoch) -> take(late_store, late_epoch, late_records)
       :: else
       fi; LATE_CLEAR }
  :: atomic { late == install ->
       if
       :: MAY(late_store, late_epoch) && number[late_store] == late_number -> admit(late_store, late_epoch, late_records)
       :: else
       fi; LATE_CLEAR }
  :: atomic { late == join ->
       if
       :: MAY(late_store, late_epoch) && JOINABLE(late_store, late_number) && ((late_number >> (2 * late_store)) & 3) == number[late_store] ->
          promise[late_store] = late_epoch; joined[late_store] = late_number;
#ifdef VOTE_ON_JOIN
          votes = votes | (1 << late_store)
#endif
       :: else
       fi; LATE_CLEAR }
  :: atomic { late == begin ->
       if
       :: MAY(late_store, late_epoch) && joined[late_store] == late_number ->
          promise[late_store] = late_epoch; votes = votes | (1 << late_store)
       :: else
       fi; LATE_CLEAR }
  od
}
#endif

init {
  atomic {
#if !FRESH
    byte n;
    votes = NONE;
    for (n : 0 .. R * R - 1) { noted[n] = 1 }
    n = 0;
#endif
    run Owner(0);
    run Owner(1);
#if WIPES
    run Wipe();
#endif
#if LATE
    run Late()
#endif
  }
}
