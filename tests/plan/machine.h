/* Machine: runs a planned program in float64, over memory laid out as the plan says, by the operations' references.
 * What the plan gets wrong (memory shared by two living values, a stride, a gradient that is written where it should be
 * added) gives other numbers than the graph that was planned. Scratch that was not written in this call is NaN, and so
 * is all else at the start. */
#ifndef TESTS_PLAN_MACHINE_H
#define TESTS_PLAN_MACHINE_H

#include "gen/ir/evaluate.h"
#include "gen/program/program.h"

struct machine {
  struct arena *arena;
  struct program *program;
  evaluate_parameter parameter;
  void *context;
  const double *const *inputs; /* of the entry */
  double loss;
  double *gradient_memory; /* of all of them, and of what the plan puts there before they are written */
  double **gradients;      /* by weight of the program */
};

/* Runs forward and backward once. */
void machine_run(struct machine *machine);

#endif
