/* What the device itself keeps of steps, and what it reports of each: the end of a step is decided there, by kernels of
 * the program. A program uses the members that its job needs; the others stay zero. */
#ifndef ACCEL_GPU_STEP_H
#define ACCEL_GPU_STEP_H

#include <stdint.h>

/* What the device reports of a step. */
struct step_report {
  int64_t at; /* the step, from 0 */
  double loss, lr, grad_norm;
  int64_t skipped;   /* steps so far that ended without an update */
  double loss_scale; /* with which the step was computed */
  double unscale;    /* what its gradients are to be multiplied with */
  int32_t lowered;   /* false where the loss scale was at its least, and had to fall */
  int32_t taken;     /* whether this one had its update */
};

/* What the device keeps of the steps. */
struct progress {
  int64_t at;           /* steps that are done */
  int64_t taken;        /* of them, what optimizer and schedule count; for the current update */
  int64_t micro;        /* micro-batches of the current step that are done */
  double loss, counted; /* sums over them, and in the end over all ranks */
  double size;          /* right after them, to be added up with them: of a rank's part of the gradient */
  double first;         /* the length of the first one's gradient */
  double whole;         /* and of the step's, not yet unscaled */
  double lr;            /* of the current update */
  float factor;         /* that its gradients are multiplied with */
  int32_t apply_update; /* whether there is an update */
  int32_t stopped;      /* a step was not finite, and the run ends: no update follows */
  struct step_report report;
};

#endif
