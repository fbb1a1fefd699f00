/* The weights of the best evaluation: kept as best.safetensors, and what the run leaves in the end. */
#ifndef RUNTIME_RUN_BEST_H
#define RUNTIME_RUN_BEST_H

#include "runtime/run/run.h"

#include <assert.h>

/* What early stopping keeps from step to step, in the program's arena: sizeof is that of int32_t[4]. */
struct stopping {
  double best;
  uint32_t known;   /* 0: there is no best; else, where its weights are kept, a sum of these */
  int32_t failures; /* evaluations since one was better by more than the threshold */
};
static_assert(sizeof(struct stopping) == sizeof(int32_t[4]), "as the program has it");

/* The same as a program has it. */
struct stopping rt_stopping_read(const int32_t state[4]);
void rt_stopping_write(const struct stopping *stopping, int32_t state[4]);

/* Keeps what was evaluated last, and notes its sum. Rank 0 does so; on others nothing can fail. */
bool rt_best_save(const struct accel_run *run, struct stopping *stopping, struct problem *problem);

/* Puts the best weights into the place of the last ones, once: nothing where the run keeps none, or a signal has ended
 * it. False leaves the last ones where they are: the file is not there, or is not of this run's best evaluation. */
bool rt_best_restore(struct accel_run *run, struct problem *problem);

#endif
