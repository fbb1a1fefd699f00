/* Rules: what a step of a job's optimizer does to one element, by its published formula, in float64; and the learning
 * rate of a step. Nothing of gen/program and gen/plan is used. */
#ifndef ACCEL_VERIFY_RULES_H
#define ACCEL_VERIFY_RULES_H

#include "gen/spec/job.h"

enum { MOST_STATES = 4 };

/* The numbers of a step for one parameter. */
struct step_numbers {
  const struct job *job;
  enum optimizer_name rule;                                            /* of the parameter: muon leaves some to adamw */
  struct optimizer_numbers of;                                         /* of the parameter's group */
  double rate;                                                         /* of the schedule, times the group's lr_scale */
  int64_t at;                                                          /* the step, counted from 0 */
  double correction1, correction2, mu, next_mu, product, fresh, share; /* what rule_begin makes of these */
};

/* An element: its weight and its states. */
struct element {
  double weight, states[MOST_STATES];
};

/* A state of a parameter: its name, as PyTorch or the rule's authors call it, and its elements. */
struct rule_state {
  const char *name;
  int64_t count;
};

/* The states of a parameter of these extents; their number. */
int rule_states(const struct step_numbers *step, int rank, const int64_t *dim, struct rule_state states[MOST_STATES]);

/* The numbers of step `at` of a parameter of so many axes, by its name. */
struct step_numbers rule_numbers(const struct job *job, const char *parameter, int rank, int64_t at);

/* Makes the step for an element whose gradient, clipped and unscaled, is g. Of lamb, adafactor and adalomo the weight
 * becomes the direction of the step, whose length follows from all elements; of schedule_free_adamw, the average that
 * is saved. */
void rule_step(const struct step_numbers *step, struct element *element, double g);

/* The weight that a run leaves for an element that it ends with: the same, but of schedule_free_adamw the average. */
double rule_left(const struct step_numbers *step, const struct element *element);

/* What of the new weights goes into training.ema's average after step `at`; negative: the average is not changed. */
double rule_smoothing(const struct job *job, int64_t at);

/* Whether a pattern matches a name: with * and ?, or after "re:" a POSIX extended regular expression. */
bool rule_matches(const char *pattern, const char *name);

/* The learning rate of step `at`, and the factor of the weight decay there. */
double rule_rate(const struct job *job, int64_t at);

/* How often the schedule advances in a step: once for each batch that ranks take, but not where they divide one. */
int64_t rule_pace(const struct job *job);

/* The length of its warm-up, and where its decay ends: in what it advances by, of which a step has rule_pace(). */
double rule_warmup(const struct job *job);
double rule_decay(const struct job *job);

/* The steps at which the schedule changes its form, in increasing order, up to `most`: their number. */
int rule_corners(const struct job *job, int64_t *steps, int most);

#endif
