/* Optimizers: what the plan knows of each one. Its arithmetic stands in templates/cpu/optimizer/NAME.c.j2.
 *
 * To add one: its template (update.c.j2 beside it says what that has), a row in optimizers.c, its name and keys in
 * schemas/job.schema.json and gen/spec/job.{h,c}, a line in tests/optimizer/rules.py, its keys in
 * tests/spec/test_schema.py. */
#ifndef ACCEL_PLAN_OPTIMIZERS_H
#define ACCEL_PLAN_OPTIMIZERS_H

#include "gen/spec/job.h"

struct optimizer {
  const char *name;
  int states;        /* float32 numbers kept for each parameter, before those that options ask for */
  bool coupled;      /* weight decay is a part of the gradient; else it shrinks the weight beside the step */
  bool counts_steps; /* the rule depends on the step's number */
};

const struct optimizer *job_optimizer(const struct job *job);

/* float32 numbers that the optimizer keeps for each parameter. */
int optimizer_states(const struct job *job);

/* Whether the update depends on the step's number, the learning rate aside. */
bool optimizer_counts_steps(const struct job *job);

#endif
