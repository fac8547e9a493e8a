/* A customer that changes its register and comes back: a pin set, then removed (PROTOCOL J1, J3).

   Topology version 1 keeps the customer in register 0, version 2 in register 1, version 3 in register 0
   again. A register is what register.pml shows it to be: one place with one owner at a time that can commit.
   Its owner is replaced at any time, by a node that knows any version so far committed, and starts from the
   record. The owner that lacks the record under its version asks the register of the version before; that
   one's owner commits `moved` and then says so. What it said stays in the network and arrives any number
   of times, at any time.

   Invariant: what is released in all is at most the capacity (there is no refill here).

   Rules that can be removed: MOVED_AS_NEW (the new register starts full), GRANT_AFTER_MOVED, TELL_FIRST (the
   answer leaves before `moved` is committed), MISSING_UNMARKED (nothing there: nothing is committed),
   IMPORT_TWICE (what was told is taken again under a later record). */
#ifndef CAPACITY
#define CAPACITY 2
#endif
#ifndef TAKEOVERS
#define TAKEOVERS 4
#endif
#define VERSIONS 3
#define HOME(v) ((v) == 2 -> 1 : 0)

mtype = { none, normal, moved };

/* The committed record of each register: what it is, under which version it came or went, its level. */
mtype kind[2] = none;
byte under[2];
byte level[2];

byte newest = 1;            /* the highest committed topology version */
byte told[VERSIONS + 1];    /* told[v]: 1 + the level that moved with version v; 0: nobody has said it */
byte left = CAPACITY;       /* ghost */
byte takeovers;

proctype Owner(byte self) {
  byte version = 1; /* as its node knows it */
  byte v, n;
  mtype has = none; byte since, tokens; /* the record in memory */
#ifdef TELL_FIRST
  byte pending; /* a `moved` that is told but not committed */
#endif
end:
  do
  :: atomic { version < newest -> version++ }
  :: atomic { takeovers < TAKEOVERS -> takeovers++; /* by a node that may lag behind */
       version = 1;
       do
       :: version < newest -> version++
       :: break
       od;
       has = kind[self]; since = under[self]; tokens = level[self]
#ifdef TELL_FIRST
       ; pending = 0
#endif
     }
  /* A grant, out of a record that lives here; committed and released. */
#ifdef GRANT_AFTER_MOVED
  :: atomic { HOME(version) == self && has != none && tokens > 0 ->
#else
  :: atomic { HOME(version) == self && has == normal && tokens > 0 ->
#endif
       if
       :: n = 1
       :: tokens > 1 -> n = 2
       fi;
       tokens = tokens - n; level[self] = tokens;
       assert(left >= n); /* over-admission */
       left = left - n; n = 0 }
  /* A customer that never was anywhere. */
#ifdef MOVED_AS_NEW
  :: atomic { HOME(version) == self && has == none ->
#else
  :: atomic { version == 1 && self == 0 && has == none ->
#endif
       has = normal; since = version; tokens = CAPACITY;
       kind[self] = has; under[self] = since; level[self] = tokens }
  /* The register of the version before has told what moved here. */
  :: atomic {
       if
       :: HOME(2) == self && version >= 2 && told[2] != 0 -> v = 2
       :: HOME(3) == self && version >= 3 && told[3] != 0 -> v = 3
       fi;
#ifdef IMPORT_TWICE
       has != normal ->
#else
       (has == none || since < v) && has != normal ->
#endif
       has = normal; since = v; tokens = told[v] - 1;
       kind[self] = has; under[self] = since; level[self] = tokens; v = 0 }
  /* It is asked to let the customer go with version v. */
  :: atomic {
       if
       :: HOME(1) == self && newest >= 2 -> v = 2
       :: HOME(2) == self && newest >= 3 -> v = 3
       fi;
       if
       :: has == normal && since < v ->
          version = (version > v -> version : v); told[v] = 1 + tokens
#ifdef TELL_FIRST
          ; pending = v
#else
          ; has = moved; since = v; kind[self] = has; under[self] = since
#endif
       :: has == none && v == 2 -> /* never was anywhere: full, and that has moved */
          version = (version > v -> version : v); told[v] = 1 + CAPACITY
#ifndef MISSING_UNMARKED
          ; has = moved; since = v; tokens = CAPACITY; kind[self] = has; under[self] = since; level[self] = tokens
#endif
       :: else
       fi;
       v = 0 }
#ifdef TELL_FIRST
  :: atomic { pending != 0 -> has = moved; since = pending; kind[self] = has; under[self] = since; pending = 0 }
#endif
  od
}

proctype Topology() {
end:
  do
  :: atomic { newest < VERSIONS -> newest++ }
  od
}

init {
  atomic {
    run Owner(0);
    run Owner(1);
    run Topology()
  }
}
