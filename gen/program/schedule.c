#include "gen/program/schedule.h"

#include <math.h>

enum { TIMESCALE_WITHOUT_WARMUP = 10000 };

int64_t schedule_per_step(int ranks, bool split_batches) {
  return split_batches ? 1 : ranks;
}

/* A rate that moved with the ranks would not be the same for all divisions of a step's micro-batches. */
static int64_t per_step(const struct job *job) {
  if (!job->schedule.step_with_optimizer) return 1;
  return schedule_per_step((int)job_batch_ranks(job), job->data.split_batches || job_has_tree(job));
}

/* The schedule's steps in the whole run. */
static int64_t all_steps(const struct job *job) {
  return job->training.steps * per_step(job);
}

/* The schedule's steps that see so many samples. */
static int64_t steps_of(const struct job *job, int64_t samples) {
  int64_t a_step = job->data.batch_size * job_batch_ranks(job) * job->accumulation.num_steps / per_step(job);
  return (samples + a_step - 1) / a_step;
}

static int64_t warmup_steps(const struct job *job) {
  if (job->schedule.warmup_samples > 0) return steps_of(job, job->schedule.warmup_samples);
  if (job->schedule.warmup_fraction == 0) return job->schedule.warmup_steps;
  return (int64_t)ceil(job->schedule.warmup_fraction * (double)all_steps(job));
}

/* Where the decay begins: after the warm-up, but for wsd with its stable steps between the two. */
static int64_t stable_until(const struct job *job, const struct schedule_steps *steps) {
  if (job->schedule.name != SCHEDULE_WSD) return steps->warmup;
  if (job->schedule.stable_steps >= 0) return steps->warmup + job->schedule.stable_steps;
  int64_t begin = steps->decay - (int64_t)round(job->schedule.decay_fraction * (double)steps->decay);
  return begin > steps->warmup ? begin : steps->warmup;
}

struct schedule_steps schedule_steps(const struct job *job) {
  struct schedule_steps steps = {.warmup = warmup_steps(job)};
  steps.decay = job->schedule.decay_samples > 0 ? steps_of(job, job->schedule.decay_samples)
                : job->schedule.decay_steps > 0 ? job->schedule.decay_steps
                                                : all_steps(job);
  steps.per_step = per_step(job);
  steps.stable = stable_until(job, &steps);
  steps.timescale = job->schedule.timescale > 0 ? job->schedule.timescale
                    : steps.warmup > 0          ? steps.warmup
                                                : TIMESCALE_WITHOUT_WARMUP;
  steps.peak = job->schedule.pct_start * (double)steps.decay - 1;
  return steps;
}
