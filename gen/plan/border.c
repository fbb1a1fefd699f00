#include "gen/plan/border.h"

struct border job_border(const struct job *job) {
  struct border border = {.scaler = job->precision.grad_scaler.enabled};
  border.short_steps = job->accumulation.num_steps > 1 && job->accumulation.sync_with_dataloader;
  border.skips = border.scaler || job->training.on_nonfinite == NONFINITE_SKIP;
  border.unscales = border.scaler;
  border.factor = border.unscales || job->optimizer.clip_grad_norm > 0;
  return border;
}

/* The loss of a step is the mean over its micro-batches. */
struct seed border_seed(const struct job *job) {
  if (job_border(job).scaler) return (struct seed){.input = "seed"};
  return (struct seed){.constant = 1.0 / job->accumulation.num_steps};
}
