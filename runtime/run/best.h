/* The weights of the best evaluation: kept as best.safetensors, and what the run leaves in the end. */
#ifndef RUNTIME_RUN_BEST_H
#define RUNTIME_RUN_BEST_H

#include "runtime/base/problem.h"
#include "runtime/run/stopping.h"

struct accel_run;

/* Keeps what was evaluated last, and notes its sum. Rank 0 does so; on others nothing can fail. */
bool rt_best_save(const struct accel_run *run, struct stopping *stopping, struct problem *problem);

/* Replaces the last weights by the best ones, once: nothing where the run keeps none, or a signal has ended
 * it. False leaves the last ones where they are: the file is not there, or is not of this run's best evaluation. */
bool rt_best_restore(struct accel_run *run, struct problem *problem);

#endif
