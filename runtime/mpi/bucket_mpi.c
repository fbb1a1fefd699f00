/* What a function of hooks.on_bucket exchanges (include/accel/bucket.h), over MPI. */
#include "include/accel/bucket.h"

#include "include/accel/collectives.h"
#include "runtime/base/problem.h"
#include "runtime/process/fail.h"

void accel_sum_over_ranks(const struct accel_bucket *bucket, float *values, int64_t count) {
  accel_all_reduce((enum accel_axis)bucket->axis, values, (size_t)count);
}

/* Elements of four bytes: a count of MPI's may be an int. */
void accel_gather_from_ranks(const struct accel_bucket *bucket, const void *own, void *all, int64_t bytes) {
  struct problem problem;
  if (bytes >= 0 && bytes % 4 == 0) {
    accel_all_gather_parts((enum accel_axis)bucket->axis, own, all, 1, (size_t)bytes / 4);
    return;
  }
  rt_problem(&problem, "accel_gather_from_ranks: %lld bytes are no multiple of 4", (long long)bytes);
  rt_fail(&problem, 1);
}
