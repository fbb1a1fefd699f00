/* A step whose numbers are not finite: the run ends, or goes on without its update. */
#include "runtime/process/world.h"
#include "runtime/run/run.h"

#include <inttypes.h>
#include <math.h>

static void require_finite(struct accel_run *run, int64_t at, const char *what, double value) {
  struct problem problem;
  if (isfinite(value)) return;
  rt_log_clear(&run->log);
  if (!rt_saver_wait(&run->saver, &problem)) rt_warn("%s", problem.what);
  rt_problem(&problem, "step %" PRId64 ": %s is %g; stopped before its update", at + 1, what, value);
  rt_help(&problem, "lower optimizer.lr, lengthen schedule.warmup_steps, clip with optimizer.clip_grad_norm, look for "
                    "wrong values in the data, or go on without such steps: training.on_nonfinite: skip");
  if (run->program->local_steps > 0) rt_fail(&problem, 1); /* this rank alone knows */
  rt_fail_together(&problem, 1);
}

void accel_require_finite_loss(struct accel_run *run, int64_t at, double loss) {
  require_finite(run, at, "the loss", loss);
}

void accel_require_finite_norm(struct accel_run *run, int64_t at, double norm) {
  require_finite(run, at, "the gradient's norm", norm);
}

void accel_tell_skipped(struct accel_run *run, bool skipped) {
  run->skipped = skipped;
}

bool accel_step_was_skipped(const struct accel_run *run) {
  return run->skipped;
}
