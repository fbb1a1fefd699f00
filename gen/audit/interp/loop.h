/* Loops, for the files that read them. */
#ifndef ACCEL_AUDIT_INTERP_LOOP_H
#define ACCEL_AUDIT_INTERP_LOOP_H

#include "gen/audit/interp/interp.h"

/* for (...; counter < bound; counter += step) */
struct counting {
  struct variable *counter;
  int64_t step, added; /* counter + added is compared */
  enum operator_kind operation;
  struct syntax *bound;
  struct syntax *more; /* a condition that is true in the body too, and may end the loop before its bound; NULL: none */
};

/* Whether this is a counting loop, whose body does not change the counter. */
bool interp_read_counting(struct interp *interp, struct syntax *loop, struct counting *counting);

/* The last value that the counter may have in the body, for a bound of `bound`. */
int64_t interp_last_value(const struct counting *counting, int64_t bound);

/* for (...; left != 0; left &= left - 1): an iteration for each bit. */
bool interp_iterates_bits(const struct syntax *loop);

/* Lists the variables that the loop assigns in its note, once. */
void interp_find_assigned(struct interp *interp, struct syntax *loop, struct note *note);

/* Forgets the variables that the loop assigns, except its counter: an iteration may start with any values. */
void interp_forget_assigned(struct interp *interp, const struct note *note, const struct variable *counter);

/* Whether integers that the body assigns, but for the counter, are carried from one iteration to the next. */
bool interp_carries_integers(struct syntax *loop, const struct note *note, const struct variable *counter);

/* Such variables take these values at the start of an iteration; NULL: they may be anything. */
void interp_take_assigned(struct interp *interp, const struct note *note, const struct variable *counter,
                          const struct value *values);

/* The integers that the loop assigns, as they are now; and whether all of `now` are in `before`, which is widened by
 * them. */
struct value *interp_assigned_values(struct interp *interp, const struct note *note);
bool interp_widen_assigned(const struct note *note, struct value *before, const struct value *now);

/* What an iteration assumed of variables that it does not assign, after a continue or a break, holds for that
 * iteration alone. before: the `count` states at its start. */
void interp_forget_assumed(struct interp *interp, const struct note *note, const struct state *before, int count);

#endif
