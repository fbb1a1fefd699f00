#include "gen/plan/border.h"

struct border job_border(const struct job *job) {
  return (struct border){.skips = job->training.on_nonfinite == NONFINITE_SKIP,
                         .factor = job->optimizer.clip_grad_norm > 0};
}
