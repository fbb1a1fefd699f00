/* Rules: what a step of a job's optimizer does to one element, by its published formula, in float64; and the learning
 * rate of a step. Nothing of gen/program and gen/plan is used. */
#ifndef ACCEL_VERIFY_RULES_H
#define ACCEL_VERIFY_RULES_H

#include "gen/spec/job.h"

enum { MOST_STATES = 4 };

/* The numbers of a step for one parameter. */
struct step_numbers {
  const struct job *job;
  struct optimizer_numbers of;                           /* of the parameter's group */
  double rate;                                           /* of the schedule, times the group's lr_scale */
  int64_t at;                                            /* the step, counted from 0 */
  double correction1, correction2, mu, next_mu, product; /* what rule_begin makes of these */
};

/* An element: its weight and its states. */
struct element {
  double weight, states[MOST_STATES];
};

/* The names of the states of a job's optimizer, as PyTorch calls them; their number, -1 for an optimizer without a rule
 * here. */
int rule_states(const struct job *job, const char *names[MOST_STATES]);

/* Computes what all elements of the parameter have in common; the members before it are set. */
void rule_begin(struct step_numbers *step);

/* Makes the step for an element whose gradient, clipped and unscaled, is g. */
void rule_step(const struct step_numbers *step, struct element *element, double g);

/* The numbers of the group that a parameter is in. */
struct optimizer_numbers rule_numbers(const struct job *job, const char *parameter);

/* Whether a pattern matches a name: with * and ?, or after "re:" a POSIX extended regular expression. */
bool rule_matches(const char *pattern, const char *name);

/* The learning rate of step `at`, and the factor of the weight decay there. */
double rule_rate(const struct job *job, int64_t at);

/* The steps at which the schedule changes its form, in increasing order, up to `most`: their number. */
int rule_corners(const struct job *job, int64_t *steps, int most);

#endif
