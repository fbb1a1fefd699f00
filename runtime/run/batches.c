/* The batches of a run's steps. */
#include "runtime/base/clock.h"
#include "runtime/data/load.h"
#include "runtime/run/run.h"

struct accel_share accel_share_of(const struct accel_run *run, int64_t at) {
  return rt_share(&run->sharing, at);
}

struct accel_contributors accel_contributors_in(const struct accel_run *run, int64_t number) {
  const struct mixture *mixture = &run->data.split[ACCEL_TRAIN].mixture;
  int64_t ranks = rt_batch_sharding_ranks(&mixture->sharding, mixture->samples, number);
  return (struct accel_contributors){ranks, run->data.own.rank < ranks ? 1.0f : 0.0f};
}

/* A batch for a step begins, at `position`; what it takes until batch_ends is what the step waits for its input. */
static double batch_begins(struct accel_run *run, enum accel_split which, int64_t position) {
  if (which == ACCEL_TRAIN) rt_prefetch_tell(&run->prefetch, position);
  return rt_now();
}

static void batch_ends(struct accel_run *run, enum accel_split which, double start) {
  if (which == ACCEL_TRAIN) run->watch->waited += rt_now() - start;
}

void accel_load_windows(struct accel_run *run, enum accel_split which, int64_t position, int64_t count, int32_t *tokens,
                        int32_t *targets) {
  double start = batch_begins(run, which, position);
  rt_load_windows(&run->data, which, position, count, tokens, targets);
  batch_ends(run, which, start);
}

void accel_load_documents(struct accel_run *run, enum accel_split which, int64_t position, int64_t count,
                          int32_t *tokens, int32_t *targets, int32_t *starts, int32_t *positions) {
  double start = batch_begins(run, which, position);
  rt_load_documents(&run->data, which, position, count, tokens, targets, starts, positions);
  batch_ends(run, which, start);
}

void accel_load_masked(struct accel_run *run, enum accel_split which, int64_t position, int64_t count, int32_t *tokens,
                       int32_t *targets) {
  double start = batch_begins(run, which, position);
  rt_load_masked(&run->data, which, position, count, tokens, targets);
  batch_ends(run, which, start);
}

void accel_load_classes(struct accel_run *run, enum accel_split which, int64_t position, int64_t count, float *features,
                        int32_t *labels) {
  double start = batch_begins(run, which, position);
  rt_load_rows(&run->data, which, position, count, features, labels, NULL);
  batch_ends(run, which, start);
}

void accel_load_values(struct accel_run *run, enum accel_split which, int64_t position, int64_t count, float *features,
                       float *labels) {
  double start = batch_begins(run, which, position);
  rt_load_rows(&run->data, which, position, count, features, NULL, labels);
  batch_ends(run, which, start);
}
