/* Schedule: the steps at which the learning rate changes its course, as whole numbers. */
#ifndef ACCEL_PROGRAM_SCHEDULE_H
#define ACCEL_PROGRAM_SCHEDULE_H

#include "gen/spec/job.h"

/* Steps counted from the start: the warm-up ends, the decay begins and ends. Without a warm-up or stable steps the
 * first, or the first two, are 0. */
struct schedule_steps {
  int64_t warmup, stable, decay;
  int64_t timescale; /* inverse_sqrt: never 0 */
  int64_t per_step;  /* of the schedule, for each step of the optimizer */
  double peak;       /* one_cycle: the step of the highest rate; may be between two, and before the first */
};

struct schedule_steps schedule_steps(const struct job *job);

/* Steps of the schedule for each step of the optimizer, by the rule of Accelerate's AcceleratedScheduler: as many as
 * there are ranks that each take a batch of their own, one where they split a batch (split_batches). */
int64_t schedule_per_step(int ranks, bool split_batches);

#endif
