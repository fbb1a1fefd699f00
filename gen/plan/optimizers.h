/* Optimizers: what the plan knows of each one. Its arithmetic stands in templates/cpu/optimizer/NAME.c.j2.
 *
 * To add one: its template (update.c.j2 beside it says what that has), a row in optimizers.c, its name and keys in
 * schemas/job.schema.json and gen/spec/job.{h,c}, a line in tests/optimizer/rules.py, its keys in
 * tests/spec/test_schema.py. */
#ifndef ACCEL_PLAN_OPTIMIZERS_H
#define ACCEL_PLAN_OPTIMIZERS_H

#include "gen/spec/job.h"

enum { MAX_OPTIMIZER_STATES = 4 };

struct optimizer {
  const char *name;
  const char *states[MAX_OPTIMIZER_STATES]; /* float32 numbers kept for each weight, as PyTorch calls them */
  bool coupled;      /* weight decay is a part of the gradient; else it shrinks the weight beside the step */
  bool counts_steps; /* the rule depends on the step's number */
};

const struct optimizer *job_optimizer(const struct job *job);

/* The names of what the optimizer keeps for each weight, options considered; returns how many. */
int optimizer_state_names(const struct job *job, const char *names[MAX_OPTIMIZER_STATES]);

/* How many these are. */
int optimizer_states(const struct job *job);

/* Whether the update depends on the step's number, the learning rate aside. */
bool optimizer_counts_steps(const struct job *job);

#endif
