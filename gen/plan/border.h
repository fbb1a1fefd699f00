/* Border: what happens where one step ends and the next begins. The job decides all of it; a program holds what it
 * needs and nothing of the rest. */
#ifndef ACCEL_PLAN_BORDER_H
#define ACCEL_PLAN_BORDER_H

#include "gen/plan/differentiate.h"
#include "gen/spec/job.h"

struct border {
  bool short_steps; /* a step may have fewer micro-batches than num_steps: the last one of an epoch */
  bool scaler;      /* the loss is scaled by a number that the run changes */
  bool skips;       /* a step may end without its update, so steps are not what optimizer and schedule count */
  bool unscales;    /* the gradients that add up are a multiple of the step's, and the norm is asked of the latter */
  bool factor;      /* the update multiplies gradients by a number that is known only now: clipping, unscaling */
};

struct border job_border(const struct job *job);

/* What the gradient of a micro-batch's loss starts from. */
struct seed border_seed(const struct job *job);

#endif
