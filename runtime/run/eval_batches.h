/* An evaluation: which samples its batches have, how their losses count, and the mean of these. */
#ifndef RUNTIME_RUN_EVAL_BATCHES_H
#define RUNTIME_RUN_EVAL_BATCHES_H

#include "include/accel/trainer.h"

/* A batch of this rank. Ranks, or the program's parts of a round, divide all batches. */
struct eval_batch {
  int64_t part;  /* whose batch it is, among this rank's parts */
  int64_t first; /* position of its first sample in the split */
  int64_t taken; /* samples from there on, at least 1; copies of the last one fill it up */
  double weight; /* of its loss: 1; below 0: it takes off what such copies have added; 0: it does not count */
};

/* Batch `i` of the evaluation at hand. A pure function of `i` and of how it was begun. */
struct eval_batch rt_eval_batch(const struct accel_run *run, int64_t i);

/* Samples of the evaluation split. */
int64_t rt_eval_samples(const struct accel_run *run);

#endif
