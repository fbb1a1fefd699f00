/* Early stopping: the run ends when its evaluations get no better. */
#ifndef RUNTIME_RUN_STOPPING_H
#define RUNTIME_RUN_STOPPING_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

struct early_stopping {
  const int32_t *state; /* in the program's arena; NULL: none is known yet */
  bool ended;           /* it ended the run */
  bool has_best;        /* the weights in memory are those of the best evaluation (best.h), not the last ones */
};

/* What it keeps from step to step, in the program's arena: sizeof is that of int32_t[4]. */
struct stopping {
  double best;
  uint32_t known;   /* 0: there is no best; else, where its weights are kept, a sum of these */
  int32_t failures; /* evaluations since one was better by more than the threshold */
};
static_assert(sizeof(struct stopping) == sizeof(int32_t[4]), "as the program has it");

/* The same as a program has it. */
struct stopping rt_stopping_read(const int32_t state[4]);
void rt_stopping_write(const struct stopping *stopping, int32_t state[4]);

#endif
