/* Averaging: ranks step alone, and their weights become means now and then (parallelism.local_sgd_steps). */
#ifndef ACCEL_PLAN_RANKS_AVERAGING_H
#define ACCEL_PLAN_RANKS_AVERAGING_H

#include "gen/program/program.h"

/* Fills program->ranks.collectives with the weights that are averaged, neighbours in memory as one: those that are
 * trained, as all others are equal on all ranks. False with an error where the model has running statistics, which each
 * rank has of its own batches. */
bool plan_averaging(struct program *program, struct diagnostics *diags);

#endif
