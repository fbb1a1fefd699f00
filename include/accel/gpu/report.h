/* What the host reads of steps that are over: the log's numbers, and whether the run continues. */
#ifndef ACCEL_GPU_REPORT_H
#define ACCEL_GPU_REPORT_H

#include "../trainer.h"
#include "device.h"
#include "step.h"

/* What the host checks of a step's report, bit by bit. */
enum accel_checks {
  ACCEL_STOPS = 1,  /* a step that is not finite ends the run */
  ACCEL_SCALES = 2, /* the loss has a scale, which takes care of gradients that are not finite */
  ACCEL_DELAYS = 4, /* it is lowered late, and the run ends where it cannot be */
  ACCEL_SKIPS = 8   /* steps may end without an update */
};

/* Reads the report that was sent `age` steps before the newest one into *report, for the log; nothing where there were
 * not that many. checks: of enum accel_checks. Ends the run with a message if a step is not finite and the job forbids
 * that. Waits until the report has arrived. */
static inline void accel_gpu_look(struct accel_run *run, struct accel_report *report, int age, unsigned checks) {
  const struct step_report *newest = (const struct step_report *)accel_gpu_report(age);
  if (newest == NULL) return;
  report->loss = newest->loss;
  report->lr = newest->lr;
  report->grad_norm = newest->grad_norm;
  report->unscale = newest->unscale;
  report->loss_scale = newest->loss_scale;
  report->skipped = newest->skipped;
  if ((checks & ACCEL_STOPS) != 0) accel_require_finite_loss(run, newest->at, newest->loss);
  if ((checks & (ACCEL_STOPS | ACCEL_SCALES)) == ACCEL_STOPS)
    accel_require_finite_norm(run, newest->at, newest->grad_norm);
  if ((checks & ACCEL_DELAYS) != 0) accel_require_lower_scale(run, newest->at, newest->lowered, newest->loss_scale);
  if ((checks & ACCEL_SKIPS) != 0) accel_report_skipped(run, !newest->taken);
}

#endif
