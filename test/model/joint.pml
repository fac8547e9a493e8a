/* A topology change moves a register from stores {0,1,2} to {1,2,3}: the joint phase (PROTOCOL J1, J2; Quorums
   and Seat::set_quorums in src/ownership/seat.h).

   Phase 0: the old set alone. Phase 1, once the version is committed: majorities of both sets. Phase 2: the
   new set alone, once a mark is committed in both, after a full scan was copied to a majority of the new set.
   Nodes learn of the next phase at any time after; a store tells an owner of an earlier one, and is told by
   an owner of a later one. Two possible owners, epochs that do not grow with starting time, owners stop
   anywhere or begin anew, one accept or copy may come late (LATE). As in amnesia.pml a bucket has one token, and a
   record says "spent" for ever; owners touch what buckets they like, so records lie dormant.

   Invariant: the one token of a bucket is released once.

   Rules that can be removed: OLD_SET_ONLY, NEW_SET_ONLY (in the joint phase), NO_PHASE_CHECK (stores answer
   owners of an earlier phase), NO_COPY, COPY_TOUCHED (what this owner has touched), COPY_NEWEST (one
   store's records), REWRITE (the copy replaces what is there), UNCOMMITTED_PHASE (a node acts on the version before it is committed). */
#ifndef K
#define K 1
#endif
#ifndef EPOCHS
#define EPOCHS 3
#endif
#ifndef LATE
#define LATE 0
#endif
#define N 4
#define ALL 15
#define NONE 7

#define HAS(set, i) (((set) >> (i)) & 1)
#define OLD(set) (HAS(set, 0) + HAS(set, 1) + HAS(set, 2) >= 2)
#define NEW(set) (HAS(set, 1) + HAS(set, 2) + HAS(set, 3) >= 2)
#if defined(OLD_SET_ONLY)
#define BOTH(set) OLD(set)
#elif defined(NEW_SET_ONLY)
#define BOTH(set) NEW(set)
#else
#define BOTH(set) (OLD(set) && NEW(set))
#endif
#define MAJORITY(set) ((phase == 0 && OLD(set)) || (phase == 1 && BOTH(set)) || (phase == 2 && NEW(set)))
#define MEMBER(r) ((phase < 2 || (r) != 0) && (phase > 0 || (r) != 3))
#define MAX(a, b) ((a) > (b) -> (a) : (b))
#define MAY(r) (promise[r] <= epoch)
#ifdef NO_PHASE_CHECK
#define SERVES(r, p) (true)
#else
#define SERVES(r, p) (knows[r] <= (p))
#endif

/* The stores. */
byte promise[N];
byte records[N];
byte knows[N]; /* the phase */

bool committed; /* the topology version */
byte spent;     /* ghost */

#if LATE
bool late;
byte late_store, late_epoch, late_phase, late_records;
#endif

inline touch(r) { promise[r] = epoch; knows[r] = MAX(knows[r], phase) }

#ifdef REWRITE
#define COPY(r) records[r] = copy
#else
#define COPY(r) records[r] = records[r] | copy
#endif

/* A member that is not in `set` yet. */
inline next_of(set) {
  if
  :: MEMBER(0) && !HAS(set, 0) -> r = 0
  :: MEMBER(1) && !HAS(set, 1) -> r = 1
  :: MEMBER(2) && !HAS(set, 2) -> r = 2
  :: MEMBER(3) && !HAS(set, 3) -> r = 3
  fi
}

mtype = { idle_work, reading, committing, scanning, marking };

proctype Owner(bit self) {
  byte epoch, last, r, phase, seen;
  bool ready;                   /* the scan is done: `copy` has what was found */
  byte copy, copied;            /* and has gone to these stores */
  byte answers;                 /* stores that have answered what is under way */
  byte what, found;             /* the bucket, as a set; whether a record was found */
  mtype work = idle_work;

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
    if
#ifdef UNCOMMITTED_PHASE
    :: phase == 0 -> phase = 2
#else
    :: phase == 0 && committed -> phase = 1
#endif
    :: phase < 2 && (knows[0] == 2 || knows[1] == 2 || knows[2] == 2 || knows[3] == 2) -> phase = 2
    :: true
    fi
  }
  do
  :: atomic { /* prepare */
       next_of(answers);
       if
       :: MAY(r) && SERVES(r, phase) ->
          touch(r); answers = answers | (1 << r); r = 0;
          if
          :: MAJORITY(answers) -> answers = 0; goto owning
          :: else
          fi
       :: knows[r] > phase && last < EPOCHS -> phase = knows[r]; goto again
       fi }
  :: atomic { last < EPOCHS -> goto again }
  od;

owning:
  do
  :: atomic { /* a record is read; nothing there: the token is granted */
       if
       :: work == reading
       :: work == idle_work && !HAS(seen, 0) -> work = reading; what = 1
#if K > 1
       :: work == idle_work && !HAS(seen, 1) -> work = reading; what = 2
#endif
       fi;
       next_of(answers);
       MAY(r) && SERVES(r, phase) -> touch(r);
       found = found | (records[r] & what); answers = answers | (1 << r); r = 0;
       if
       :: MAJORITY(answers) ->
          answers = 0; seen = seen | what;
          if
          :: found == 0 -> work = committing
          :: else -> work = idle_work; what = 0
          fi;
          found = 0
       :: else
       fi }
  :: atomic { work == committing ->
       next_of(answers);
       if
       :: MAY(r) && SERVES(r, phase) ->
          touch(r); records[r] = records[r] | what; answers = answers | (1 << r)
#if LATE
       :: !late -> late = true; late_store = r; late_epoch = epoch; late_phase = phase; late_records = what
#endif
       fi;
       r = 0;
       if
       :: MAJORITY(answers) ->
          assert((spent & what) == 0); /* the same token twice */
          spent = spent | what; answers = 0; what = 0; work = idle_work
       :: else
       fi }
  /* The joint phase ends: scan, copy, mark. */
  :: atomic {
       if
       :: work == scanning
       :: work == idle_work && phase == 1 && !ready -> work = scanning
       fi;
       next_of(answers);
       MAY(r) && SERVES(r, phase) -> touch(r);
#ifndef NO_COPY
       copy = copy | records[r];
#endif
       answers = answers | (1 << r); r = 0;
       if
#ifdef COPY_NEWEST
       :: true ->
#else
       :: MAJORITY(answers) ->
#endif
          answers = 0; work = idle_work; ready = true
#ifdef COPY_TOUCHED
          ; copy = copy & seen
#endif
       :: else
       fi }
  :: atomic { ready && !NEW(copied) && work == idle_work -> /* commits go on beside the copying */
       if
       :: !HAS(copied, 1) -> r = 1
       :: !HAS(copied, 2) -> r = 2
       :: !HAS(copied, 3) -> r = 3
       fi;
       if
       :: MAY(r) && SERVES(r, phase) -> touch(r); COPY(r); copied = copied | (1 << r)
#if LATE
       :: !late -> late = true; late_store = r; late_epoch = epoch; late_phase = phase; late_records = copy
#endif
       fi;
       r = 0;
       if
       :: NEW(copied) -> copy = 0
       :: else
       fi }
  :: atomic {
       if
       :: work == marking
       :: work == idle_work && phase == 1 && NEW(copied) -> work = marking
       fi;
       next_of(answers);
       MAY(r) && SERVES(r, phase) -> promise[r] = epoch; knows[r] = 2; answers = answers | (1 << r); r = 0;
       if
       :: BOTH(answers) -> answers = 0; copied = 0; ready = false; work = idle_work; phase = 2
       :: else
       fi }
  :: atomic { last < EPOCHS -> goto again }
  od;

again:
  atomic { answers = 0; seen = 0; ready = false; copy = 0; copied = 0; what = 0; found = 0; r = 0; work = idle_work; goto idle }
}

#if LATE
proctype Late() {
end:
  do
  :: atomic { late ->
       if
       :: promise[late_store] <= late_epoch && SERVES(late_store, late_phase) ->
          promise[late_store] = late_epoch; records[late_store] = records[late_store] | late_records;
          knows[late_store] = MAX(knows[late_store], late_phase)
       :: else
       fi;
       late = false; late_store = 0; late_epoch = 0; late_phase = 0; late_records = 0 }
  od
}
#endif

proctype Topology() { atomic { !committed -> committed = true } }

init {
  atomic {
    run Owner(0);
    run Owner(1);
    run Topology();
#if LATE
    run Late()
#endif
  }
}
