/* Loops, for the files that read them. */
#ifndef ACCEL_AUDIT_WALK_LOOP_H
#define ACCEL_AUDIT_WALK_LOOP_H

#include "gen/audit/walk.h"

/* for (...; counter < bound; counter += step) */
struct counting {
  struct variable *counter;
  int64_t step, added; /* counter + added is compared */
  enum operator_kind operation;
  struct syntax *bound;
  struct syntax *more; /* a condition that holds in the body too, and may end the loop before its bound; NULL: none */
};

/* Whether the loop counts, the body leaving the counter alone. */
bool walk_read_counting(struct walk *walk, struct syntax *loop, struct counting *counting);

/* The last value that the counter may have in the body, for a bound of `bound`. */
int64_t walk_last_value(const struct counting *counting, int64_t bound);

/* for (...; left != 0; left &= left - 1): a turn for each bit. */
bool walk_takes_bits(const struct syntax *loop);

/* Lists what the loop assigns in its note, once. */
void walk_find_assigned(struct walk *walk, struct syntax *loop, struct note *note);

/* What the loop assigns, but for its counter, may be anything at the start of a turn. */
void walk_forget_assigned(struct walk *walk, const struct note *note, const struct variable *counter);

/* Whether integers that the body assigns, but for the counter, go from one turn to the next. */
bool walk_carries_integers(struct syntax *loop, const struct note *note, const struct variable *counter);

/* Such variables take these values at the start of a turn; NULL: they may be anything. */
void walk_take_assigned(struct walk *walk, const struct note *note, const struct variable *counter,
                        const struct value *values);

/* The integers that the loop assigns, as they are now; and whether all of `now` lie in `before`, which is widened by
 * them. */
struct value *walk_assigned_values(struct walk *walk, const struct note *note);
bool walk_widen_assigned(const struct note *note, struct value *before, const struct value *now);

/* What a turn took for granted of variables that it does not assign, behind a continue or a break, holds for that turn
 * alone. before: the `count` states at its start. */
void walk_forget_assumed(struct walk *walk, const struct note *note, const struct state *before, int count);

#endif
