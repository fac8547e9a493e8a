/* One lease between a lessee and a grantor whose clocks drift against each other, across take-overs
   (PROTOCOL B6, B9, D3-D6, E2-E4; src/lease/holder.cc, ledger.cc, ledger_serve.cc, terms.h).

   Time goes in steps of one and a half units. In each, every clock (the lessee's, the owner's, that of the
   replica by which a successor ages what it reads) advances by 1 or by 2 units: a slew of a third. What is
   left of a lifetime is kept in units of the clock that measures it, so that time has no end in the model.
   Requests and answers are lost, doubled, reordered (SLOTS > 1) and delayed without bound; the owner is
   replaced at any time, and its successor goes on from the last committed record. The TTL is lowered once.
   There is no refill.

   Invariants, asserted whenever the lessee spends a token: the ledger in force counts it as out; and in all
   no more is spent than the capacity.

   Rules that can be removed: NO_LESSEE_MARGIN, NO_GRANTOR_MARGIN, FROM_RECEIPT, MOVES_EARLIER (E3),
   ANY_ANSWER, ANSWER_TWICE (E2), STALE_CLOCK (E4), NO_COMMIT_FIRST (B6), EXPIRED_RETURNS (D6). */
#ifndef REQUESTS
#define REQUESTS 2
#endif
#ifndef SLOTS
#define SLOTS 1 /* messages in flight in each direction */
#endif
#ifndef CAPACITY
#define CAPACITY 1
#endif
#ifndef TAKEOVERS
#define TAKEOVERS 1
#endif
#define TTL (lowered -> 3 : 6)
#ifdef NO_LESSEE_MARGIN
#define LESSEE_LIFE(ttl) (ttl)
#else
#define LESSEE_LIFE(ttl) ((ttl) * 2 / 3) /* TTL x (1 - slew) */
#endif
#ifdef NO_GRANTOR_MARGIN
#define GRANTOR_LIFE(ttl) (ttl)
#else
#define GRANTOR_LIFE(ttl) (((ttl) * 3 + 1) / 2) /* TTL / (1 - slew), rounded up */
#endif
#define MAX(a, b) ((a) > (b) -> (a) : (b))
#define MINUS(a, b) ((a) > (b) -> (a) - (b) : 0)
#define LONG 6 /* no lifetime of a lessee is longer */

bool lowered; /* the TTL */

/* The lessee. */
byte held, left, since, sequence, spent;
byte used;     /* ghost: spent by all incarnations */
bool asked;   /* the latest sequence may still be answered */
bool taking;  /* a check has looked and not yet taken (STALE_CLOCK) */

/* Sequence, held, spent; sequence, granted, TTL. */
chan requests = [SLOTS] of { byte, byte, byte };
chan answers = [SLOTS] of { byte, byte, byte };

/* The ledger of the owner in force, and an answer that waits for its commit. */
byte level = CAPACITY, out, expires, booked_spent, booked_sequence;
bool entry, dirty, answered, waiting;
byte answer_sequence, answer_granted, answer_ttl;
byte takeovers;

/* The last committed record. */
byte stored_level = CAPACITY, stored_out, stored_expires, stored_spent, stored_sequence;
bool stored_entry;

inline spend() {
  assert(entry && out >= held + (spent - booked_spent)); /* spent, but not counted as out */
  assert(used < CAPACITY);                               /* over-admission */
  held--; spent++; used++
}

inline expire() {
  if
  :: entry && expires == 0 ->
#ifdef EXPIRED_RETURNS
     level = level + out;
#endif
     entry = false; out = 0; booked_spent = 0; booked_sequence = 0; answered = false /* burnt */
  :: else
  fi
}

inline extend() {
#ifdef MOVES_EARLIER
  expires = GRANTOR_LIFE(TTL)
#else
  expires = MAX(expires, GRANTOR_LIFE(TTL))
#endif
}

inline answer_later(s, n, t) {
  dirty = true; answered = true;
#ifdef NO_COMMIT_FIRST
  if
  :: nfull(answers) -> answers ! s, n, t
  :: full(answers)
  fi
#else
  waiting = true; answer_sequence = s; answer_granted = n; answer_ttl = t
#endif
}

inline book(s, h, p, n) {
  if
  :: !entry && (h > 0 || p > 0) ->
     skip /* unknown */
  :: entry && s < booked_sequence -> skip
  :: entry && s == booked_sequence ->
     if
     :: p == booked_spent && h <= out ->
        n = out - h;
        if
        :: !answered -> extend()
        :: else
        fi;
        answer_later(s, n, TTL); n = 0
     :: else
     fi
  :: (!entry && h == 0 && p == 0) || (entry && s > booked_sequence && p >= booked_spent && p - booked_spent + h <= out) ->
     entry = true;
     level = level + out - (p - booked_spent) - h;
     out = h; booked_spent = p; booked_sequence = s;
     if
     :: level > 0 -> n = 1
     :: level > 1 -> n = 2
     :: n = 0
     fi;
     level = level - n; out = out + n;
     extend();
     answer_later(s, n, TTL); n = 0
  :: else /* a breach: booked nothing, answered `unknown` */
  fi
}

proctype Lessee() {
  byte s, n, t;
end:
  do
  :: atomic { sequence < REQUESTS && nfull(requests) -> /* a snapshot of what it holds and has spent */
       sequence++; since = 0; asked = true;
       if
       :: requests ! sequence, held, spent
       :: true /* lost */
       fi }
  :: atomic { nempty(answers) ->
       if
       :: answers ?? s, n, t
       :: answers ? <s, n, t> /* it comes again */
       fi;
       if
#ifdef ANY_ANSWER
       :: true ->
#else
       :: s == sequence && asked ->
#endif
#ifndef ANSWER_TWICE
          asked = false;
#endif
          if
          :: left == 0 -> held = 0
          :: else
          fi;
#ifdef FROM_RECEIPT
          left = MAX(left, LESSEE_LIFE(t));
#else
          left = MAX(left, MINUS(LESSEE_LIFE(t), since));
#endif
          if
          :: left > 0 -> held = held + n
          :: else -> held = 0
          fi;
          since = (asked -> since : 0)
       :: else
       fi;
       s = 0; n = 0; t = 0 }
  /* Its lease is gone, at the grantor too: a new incarnation. */
  :: atomic { left == 0 && spent > 0 && !entry && stored_expires == 0 && empty(requests) && empty(answers) ->
       held = 0; spent = 0; asked = false; since = 0 }
#ifdef STALE_CLOCK
  :: atomic { held > 0 && left > 0 && !taking -> taking = true }
  :: atomic { taking && held > 0 -> taking = false; spend() }
#else
  :: atomic { held > 0 && left > 0 -> spend() }
#endif
  od
}

proctype Grantor() {
  byte s, h, p, n;
end:
  do
  :: atomic { nempty(requests) && !waiting ->
       if
       :: requests ?? s, h, p
       :: requests ? <s, h, p>
       fi;
       expire(); book(s, h, p, n);
       s = 0; h = 0; p = 0 }
  :: atomic { dirty -> /* committed; what waits for it leaves */
       expire();
       dirty = false;
       stored_level = level; stored_out = out; stored_expires = expires; stored_spent = booked_spent;
       stored_sequence = booked_sequence; stored_entry = entry;
       if
       :: waiting ->
          waiting = false;
          if
          :: nfull(answers) -> answers ! answer_sequence, answer_granted, answer_ttl
          :: true
          fi;
          answer_sequence = 0; answer_granted = 0; answer_ttl = 0
       :: else
       fi }
  :: atomic { takeovers < TAKEOVERS -> takeovers++;
       level = stored_level; out = stored_out; expires = stored_expires; booked_spent = stored_spent;
       booked_sequence = stored_sequence; entry = stored_entry; dirty = false; answered = false; waiting = false;
       answer_sequence = 0; answer_granted = 0; answer_ttl = 0;
       expire() }
  :: atomic { !lowered -> lowered = true }
  od
}

/* How far the clock gets by which `what` is measured; nobody looks when nothing is measured. */
inline advance(what) {
  if
  :: what -> by = 1
  :: what -> by = 2
  :: else -> by = 0
  fi
}

proctype Time() {
  byte by;
end:
  do
  :: atomic { left > 0 || asked || expires > 0 || stored_expires > 0 ->
       advance((left > 0 || asked));
       left = MINUS(left, by);
       if
       :: asked -> since = (since + by > LONG -> LONG : since + by)
       :: else
       fi;
       advance((expires > 0));
       expires = MINUS(expires, by);
       expire();
       advance((stored_expires > 0));
       stored_expires = MINUS(stored_expires, by);
       by = 0 }
  od
}

init {
  atomic {
    run Lessee();
    run Grantor();
    run Time()
  }
}
