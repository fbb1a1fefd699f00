/* accel/batch.h: what the function of hooks.on_batch gets (accel/hooks.h). */
#ifndef ACCEL_BATCH_H
#define ACCEL_BATCH_H

#include <stdbool.h>
#include <stdint.h>

/* A micro-batch of this rank as it was loaded, for on_batch to change. An array that the model does not ask for, or
 * that data of this kind does not have, is NULL. */
struct accel_batch {
  bool is_evaluation;   /* it is of the samples to evaluate on */
  int64_t position;     /* of its first sample among those of this rank, from the run's first step on */
  int64_t count, width; /* samples; tokens or features of each. All arrays are row-major */
  int32_t *tokens;      /* count x width, below the model's vocabulary */
  int32_t *targets;     /* count x width; below 0: none */
  int32_t *starts;      /* data.packing: count x width */
  int32_t *positions;   /* data.packing: count x width */
  float *features;      /* count x width */
  int32_t *classes;     /* count */
  float *values;        /* count */
  void *const *inputs;  /* data.inputs: by their order in the job, count x the numbers of a sample each; NULL: none */
};

#endif
