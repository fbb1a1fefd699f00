/* accel/bucket.h: what the function of hooks.on_bucket gets (accel/hooks.h), and what it may call. docs/hooks.md has an
 * example. */
#ifndef ACCEL_BUCKET_H
#define ACCEL_BUCKET_H

#include <stdbool.h>
#include <stdint.h>

struct accel_run;

/* Neighbouring gradients of this rank, for on_bucket to make the mean of those of all ranks. Between two parameters
 * there may be elements that belong to none: they are 0 on all ranks, and stay 0 if the function changes each element
 * by itself. */
struct accel_bucket {
  float *gradients; /* count: of this rank's samples of the step, times the loss scale where fp16 has one */
  float *state;  /* count: the function's own, 0 at the start of the run and kept from step to step; when a checkpoint
                    is saved it becomes the mean of the ranks', which the run continues with and resumes from */
  int64_t first; /* of all gradients, the element that gradients[0] is */
  int64_t count;
  int64_t index; /* of this bucket in the step, from 0 */
  bool is_last;  /* in the step */
  int64_t step;  /* steps that the run has done */
  int64_t ranks; /* that have batches of their own */
  int axis;      /* of the mesh, along which these ranks are */
};

/* values[i] becomes its sum over the ranks, the same bits on all of them. All ranks call it with equal counts; a rank
 * that does not come within devices.timeout ends all. */
void accel_sum_over_ranks(const struct accel_bucket *bucket, float *values, int64_t count);

/* all[ranks][bytes] becomes the `bytes` bytes at own[] of each rank, in their order. The two are apart, and `bytes` is
 * a multiple of 4; else all processes end with a message. All ranks call it. */
void accel_gather_from_ranks(const struct accel_bucket *bucket, const void *own, void *all, int64_t bytes);

/* The gradient of parameter `index` (accel_weight_name) in this bucket, `*count` elements of it, row-major; NULL where
 * the bucket does not have it. */
float *accel_gradient_in(const struct accel_run *run, const struct accel_bucket *bucket, int index, int64_t *count);

#endif
