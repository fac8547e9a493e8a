/* One register on three replicas and its two possible owners: prepare, record reads, accepts and the
   re-activation of single customers as separate steps (PROTOCOL B1-B7, B10; src/ownership/seat.cc,
   seat_commit.cc, replica.cc).

   Epochs are chosen freely above a node's own last one, so they do not grow with starting time. A slot has
   K records; a commit carries all that gathered while the one before was in flight. A message may be lost
   or come once more at any later time (`Late`); a replica may restart; an owner may stop at any point and
   never go on, or begin anew; a customer's owner may die and be read again within the same epoch while its
   commit is still in flight.

   Invariant: what is released of a bucket is at most its capacity (there is no refill here).

   Rules that can be removed: NO_OWN_EPOCHS (B1), NO_PROMISE, NO_DURABLE_PROMISE (B2), NO_READ_FENCE (B3),
   NO_SEQUENCE, NO_ACTIVATION (B4), NO_ORDER (B5), NO_COMMIT_FIRST (B6), NO_MAJORITY_READ (B9, B10). */
#ifndef K
#define K 1 /* records in the slot */
#endif
#ifndef CAPACITY
#define CAPACITY 2
#endif
#ifndef EPOCHS
#define EPOCHS 3 /* the highest epoch */
#endif
#ifndef GRANTS
#define GRANTS 3 /* grants in all */
#endif
#ifndef LATE
#define LATE 1 /* 0: no accept comes late */
#endif
#ifndef DEATHS
#define DEATHS 1 /* deaths of a customer's owner within an epoch */
#endif
#define R 3
#define SEQUENCES 8 /* a version is epoch * SEQUENCES + sequence */
#define NONE 7

#define MAJORITY(set) ((set) == 3 || (set) >= 5)
#define HAS(set, i) (((set) >> (i)) & 1)

#ifdef NO_PROMISE
#define MAY(r, e) (true)
#else
#define MAY(r, e) (promise[r] <= (e))
#endif
#ifdef NO_ORDER
#define NEWER(r, k, v) (true)
#else
#define NEWER(r, k, v) (version[(r) * K + (k)] < (v))
#endif

/* The replicas. */
byte promise[R];
byte version[R * K]; /* 0: no record */
byte level[R * K];

byte left[K] = CAPACITY; /* ghost: what may still be released */
byte grants;
byte deaths;
#ifdef NO_DURABLE_PROMISE
byte restarts;
#endif

/* One accept of one record that comes late. */
bool late;
byte late_replica, late_bucket, late_epoch, late_version, late_level;

inline store(r, k, e, v, l) {
  promise[r] = (promise[r] > (e) -> promise[r] : (e));
  if
  :: NEWER(r, k, v) -> version[(r) * K + (k)] = v; level[(r) * K + (k)] = l
  :: else
  fi
}

inline release(k, n) {
  assert(left[k] >= n); /* over-admission */
  left[k] = left[k] - n
}

/* B7: one commit in flight; it carries what gathered. */
inline flush() {
  flying = gathered; gathered = 0;
  for (k : 0 .. K - 1) {
    if
    :: HAS(flying, k) ->
       sequence++;
       flying_version[k] = epoch * SEQUENCES + sequence; flying_level[k] = gathered_level[k];
       flying_grant[k] = gathered_grant[k]; gathered_level[k] = 0; gathered_grant[k] = 0
    :: else
    fi
  }
  k = 0
}

proctype Owner(bit self) {
  byte epoch, last, sequence, r, k, n;
  byte promised;                               /* replicas */
  byte reading = NONE, read_from, best, found; /* of one bucket */
  byte awake;                                 /* buckets whose record has been read */
  byte memory[K];                              /* the level as the customer's owner has it */
  byte gathered, gathered_level[K], gathered_grant[K];
  byte flying, flying_version[K], flying_level[K], flying_grant[K], accepted;

idle:
  atomic { /* B1: any epoch of its own above its last one */
    last < EPOCHS;
    epoch = last + 1;
    do
    :: epoch < EPOCHS -> epoch++
    :: break
    od;
#ifndef NO_OWN_EPOCHS
    epoch % 2 == self;
#endif
    last = epoch
  }
  do /* prepare */
  :: atomic {
       if
       :: !HAS(promised, 0) -> r = 0
       :: !HAS(promised, 1) -> r = 1
       :: !HAS(promised, 2) -> r = 2
       fi;
       if
       :: MAY(r, epoch) -> promise[r] = (promise[r] > epoch -> promise[r] : epoch); promised = promised | (1 << r)
       :: else
       fi;
       r = 0;
       if
       :: MAJORITY(promised) -> promised = 0; goto owning
       :: else
       fi }
  :: atomic { last < EPOCHS -> promised = 0; goto idle }
  od;
owning:
  do
  /* A customer is asked for: its record is read from a majority, under the epoch (B3). */
  :: atomic { reading == NONE && !HAS(awake, 0) -> reading = 0 }
#if K > 1
  :: atomic { reading == NONE && !HAS(awake, 1) -> reading = 1 }
#endif
  :: atomic { reading != NONE ->
       if
       :: !HAS(read_from, 0) -> r = 0
       :: !HAS(read_from, 1) -> r = 1
       :: !HAS(read_from, 2) -> r = 2
       fi;
#ifdef NO_READ_FENCE
       if
       :: true ->
#else
       if
       :: MAY(r, epoch) -> promise[r] = (promise[r] > epoch -> promise[r] : epoch);
#endif
          read_from = read_from | (1 << r);
          if
          :: version[r * K + reading] > best -> best = version[r * K + reading]; found = level[r * K + reading]
          :: else
          fi
       :: else
       fi;
#ifdef NO_MAJORITY_READ
       if
       :: read_from != 0 ->
#else
       if
       :: MAJORITY(read_from) ->
#endif
          memory[reading] = (best == 0 -> CAPACITY : found);
          awake = awake | (1 << reading); reading = NONE; read_from = 0; best = 0; found = 0
#ifdef NO_SEQUENCE
          ; sequence = 0 /* counted per activation */
#endif
       :: else
       fi; r = 0 }
  /* A grant; a customer's owner has one commit under way at a time. */
  :: atomic { grants < GRANTS ->
       if
       :: HAS(awake, 0) && memory[0] > 0 && gathered_grant[0] == 0 && flying_grant[0] == 0 -> k = 0
#if K > 1
       :: HAS(awake, 1) && memory[1] > 0 && gathered_grant[1] == 0 && flying_grant[1] == 0 -> k = 1
#endif
       fi;
       if
       :: n = 1
       :: memory[k] > 1 -> n = 2
       fi;
       grants++;
       memory[k] = memory[k] - n;
       gathered = gathered | (1 << k); gathered_level[k] = memory[k];
#ifdef NO_COMMIT_FIRST
       release(k, n);
#else
       gathered_grant[k] = n;
#endif
       n = 0; k = 0;
       if
       :: flying == 0 -> flush()
       :: else
       fi }
  :: atomic { flying != 0 ->
       if
       :: !HAS(accepted, 0) -> r = 0
       :: !HAS(accepted, 1) -> r = 1
       :: !HAS(accepted, 2) -> r = 2
       fi;
       if
       :: MAY(r, epoch) ->
          for (k : 0 .. K - 1) {
            if
            :: HAS(flying, k) -> store(r, k, epoch, flying_version[k], flying_level[k])
            :: else
            fi
          }
          accepted = accepted | (1 << r)
#if LATE
       :: !late ->
          if
          :: HAS(flying, 0) -> k = 0
#if K > 1
          :: HAS(flying, 1) -> k = 1
#endif
          fi;
          late = true; late_replica = r; late_bucket = k; late_epoch = epoch;
          late_version = flying_version[k]; late_level = flying_level[k]
#endif
       :: else
       fi;
       r = 0; k = 0;
       if
       :: MAJORITY(accepted) -> /* the answers leave */
          for (k : 0 .. K - 1) {
            if
            :: flying_grant[k] > 0 -> release(k, flying_grant[k])
            :: else
            fi;
            flying_version[k] = 0; flying_level[k] = 0; flying_grant[k] = 0
          }
          accepted = 0; flush()
       :: else
       fi }
  /* A customer's owner dies; its commit goes on, its answers are never released (B4). */
  :: atomic { deaths < DEATHS && awake != 0 ->
       if
       :: HAS(awake, 0) -> k = 0
#if K > 1
       :: HAS(awake, 1) -> k = 1
#endif
       fi;
       deaths++;
       awake = awake & (NONE - (1 << k)); memory[k] = 0;
#ifndef NO_ACTIVATION
       gathered_grant[k] = 0; flying_grant[k] = 0;
#endif
       k = 0 }
  /* Deposed, or its process begins anew. */
  :: atomic { last < EPOCHS ->
       for (k : 0 .. K - 1) {
         memory[k] = 0; gathered_level[k] = 0; gathered_grant[k] = 0;
         flying_version[k] = 0; flying_level[k] = 0; flying_grant[k] = 0
       }
       k = 0; sequence = 0; awake = 0; reading = NONE; read_from = 0; best = 0; found = 0;
       gathered = 0; flying = 0; accepted = 0;
       goto idle }
  od
}

#if LATE
proctype Late() {
end:
  do
  :: atomic { late ->
       if
       :: MAY(late_replica, late_epoch) -> store(late_replica, late_bucket, late_epoch, late_version, late_level)
       :: else
       fi;
       late = false; late_replica = 0; late_bucket = 0; late_epoch = 0; late_version = 0; late_level = 0 }
  od
}
#endif

#ifdef NO_DURABLE_PROMISE
proctype Restart() {
end:
  do
  :: atomic { restarts < 2 -> restarts++;
       if
       :: promise[0] = 0
       :: promise[1] = 0
       :: promise[2] = 0
       fi }
  od
}
#endif

init {
  atomic {
    run Owner(0);
    run Owner(1);
#if LATE
    run Late();
#endif
#ifdef NO_DURABLE_PROMISE
    run Restart()
#endif
  }
}
