/* Ranges: what a step can make of a parameter, where each element of its gradient is known up to a bound. */
#ifndef ACCEL_VERIFY_RANGES_H
#define ACCEL_VERIFY_RANGES_H

#include "gen/verify/rules/rules.h"
#include "gen/verify/tape/tape.h"

struct range {
  double low, middle, high;
};

/* A parameter before a step, and the step. */
struct stepping {
  const struct step_numbers *numbers; /* rule_begin was called */
  int rank;
  int64_t dim[MOST_AXES];
  int64_t count;
  const double *weights, *gradient; /* [count] */
  double bound;                     /* of an element of the gradient */
  int n_states;
  struct rule_state states[MOST_STATES];
  const double *before[MOST_STATES]; /* by the states' counts; NULL: all 0 */
  /* What the program made of them: a range that has it already is not made wider. NULL: all are as wide as they can be.
   */
  const double *after, *states_after[MOST_STATES];
};

/* What it can be afterwards: ranges [count] of the weights, and of each state as many as that has. Rounding of the step
 * itself is not in them, except that of sums over a tensor. */
struct stepped {
  struct range *weights, *states[MOST_STATES];
};

/* Computes the ranges; the arrays are the caller's. False: there is no memory. */
bool ranges_of_step(const struct stepping *stepping, struct stepped *stepped);

/* The ranges of one element by the rule alone, whose gradient is g, with the states that it begins with. `after`: what
 * the program made of it, as stepping->after has it; NULL: that is not known. */
void range_of_element(const struct stepping *stepping, struct element before, double g, const struct element *after,
                      struct range *weight, struct range states[MOST_STATES]);

/* How far float32's roundings of a step may move a weight, and a state, out of its range. */
double weight_rounding(double before, struct range weight);
double state_rounding(double before, struct range state);

/* Whether the rule of the parameter looks at more than one element; then the tensor's function computes the ranges. */
typedef bool tensor_rule(const struct stepping *stepping, struct stepped *stepped);
tensor_rule *tensor_rule_of(const struct step_numbers *numbers);

#endif
