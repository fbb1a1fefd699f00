/* The learning rate of a step, as docs/job.md writes it. */
#include <math.h>

#include "gen/verify/rules/rules.h"

int64_t rule_pace(const struct job *job) {
  const bool alike = job->data.split_batches || job_has_tree(job) || !job->schedule.step_with_optimizer;
  return alike ? 1 : job_batch_ranks(job);
}

/* The number of steps that so many samples fill. */
static double steps_of(const struct job *job, int64_t samples) {
  return ceil((double)samples / (double)job->data.batch_size / (double)job->accumulation.num_steps);
}

double rule_warmup(const struct job *job) {
  if (job->schedule.warmup_samples > 0) return steps_of(job, job->schedule.warmup_samples);
  if (job->schedule.warmup_fraction > 0)
    return ceil(job->schedule.warmup_fraction * (double)(job->training.steps * rule_pace(job)));
  return (double)job->schedule.warmup_steps;
}

double rule_decay(const struct job *job) {
  if (job->schedule.decay_samples > 0) return steps_of(job, job->schedule.decay_samples);
  return job->schedule.decay_steps > 0 ? (double)job->schedule.decay_steps
                                       : (double)(job->training.steps * rule_pace(job));
}

/* wsd: the step at which the decay begins. */
static double stable_until(const struct job *job) {
  const double W = rule_warmup(job), D = rule_decay(job);
  if (job->schedule.stable_steps >= 0) return W + (double)job->schedule.stable_steps;
  return fmax(D - rint(job->schedule.decay_fraction * D), W);
}

static double one_cycle(const struct job *job, double n) {
  const double D = rule_decay(job), top = job->optimizer.lr, first = top / job->schedule.div_factor;
  const double last = first / job->schedule.final_div_factor, peak = job->schedule.pct_start * D - 1;
  const bool rises = n <= peak;
  const double from = rises ? first : top, to = rises ? top : last;
  double part = rises ? n / peak : (n - peak) / (D - 1 - peak);
  part = fmin(fmax(part, 0), 1);
  if (job->schedule.anneal == ANNEAL_LINEAR) return from + (to - from) * part;
  return to + (from - to) * (1 + cos(3.14159265358979323846 * part)) / 2;
}

static double wsd(const struct job *job, double n) {
  const double top = job->optimizer.lr, low = job->schedule.min_lr, D = rule_decay(job), from = stable_until(job);
  const double d = n >= D ? 1 : n <= from ? 0 : (n - from) / (D - from);
  if (job->schedule.decay_type == DECAY_SQRT) return top + (low - top) * sqrt(d);
  if (job->schedule.decay_type == DECAY_COSINE) return low + (top - low) * (1 + cos(3.14159265358979323846 * d)) / 2;
  return top + (low - top) * d;
}

/* Of cycles equal parts. */
static double restarts(const struct job *job, double d) {
  const double top = job->optimizer.lr, low = job->schedule.min_lr, whole = d * (double)job->schedule.cycles;
  if (d >= 1) return low;
  return low + (top - low) * (1 + cos(3.14159265358979323846 * (whole - floor(whole)))) / 2;
}

static double unwarmed(const struct job *job, double n) {
  const double top = job->optimizer.lr, low = job->schedule.min_lr, W = rule_warmup(job), D = rule_decay(job);
  const double d = n >= D ? 1 : n <= W ? 0 : (n - W) / (D - W), since = fmax(n - W, 0);
  const double T = job->schedule.timescale > 0 ? (double)job->schedule.timescale : W > 0 ? W : 10000;
  switch (job->schedule.name) {
  case SCHEDULE_CONSTANT:
    return top;
  case SCHEDULE_LINEAR:
    return top + (low - top) * d;
  case SCHEDULE_COSINE:
    return low + (top - low) * (1 + cos(3.14159265358979323846 * d)) / 2;
  case SCHEDULE_COSINE_WITH_RESTARTS:
    return restarts(job, d);
  case SCHEDULE_POLYNOMIAL:
    return low + (top - low) * pow(1 - d, job->schedule.power);
  case SCHEDULE_INVERSE_SQRT:
    return top * sqrt(T / (T + since));
  case SCHEDULE_EXPONENTIAL:
    return top * pow(job->schedule.gamma, since);
  case SCHEDULE_STEP:
    return top * pow(job->schedule.gamma, floor(since / (double)job->schedule.step_size));
  case SCHEDULE_ONE_CYCLE:
    return one_cycle(job, n);
  case SCHEDULE_WSD:
    return wsd(job, n);
  }
  return NAN;
}

double rule_rate(const struct job *job, int64_t at) {
  const double n = (double)(at * rule_pace(job)), W = rule_warmup(job);
  const double rate = unwarmed(job, n);
  return job->schedule.name != SCHEDULE_ONE_CYCLE && n < W ? rate * (n + 1) / W : rate;
}

int rule_corners(const struct job *job, int64_t *steps, int most) {
  const int64_t W = (int64_t)rule_warmup(job), D = (int64_t)rule_decay(job), last = job->training.steps - 1;
  const int64_t each = rule_pace(job), S = (int64_t)stable_until(job);
  const int64_t candidates[] = {W / each - 1, W / each,     W / each + 1, (W + D) / 2 / each,
                                S / each,     D / each - 1, D / each,     last};
  int count = 0;
  for (int64_t k = 0; k < (int64_t)(sizeof candidates / sizeof *candidates); k++) {
    const int64_t at = candidates[k];
    bool known = at < 2 || at > last;
    for (int i = 0; i < count; i++) known = known || steps[i] == at;
    if (!known && count < most) steps[count++] = at;
  }
  return count;
}
