/* How a step of the optimizer ends, after its micro-batches: how their losses and gradients become one mean, and
 * whether and with which factor the update is applied. gen/plan/graph/step_end.h decides it. */
#ifndef ACCEL_PROGRAM_STEP_END_H
#define ACCEL_PROGRAM_STEP_END_H

#include "gen/ir/op.h"

struct step_end {
  bool short_steps;      /* a step may have fewer micro-batches than num_steps: the last one of an epoch */
  bool counts;           /* the loss of a step is a mean over what its micro-batches count: the entry's second result */
  bool by_micro_batches; /* it is a mean over the micro-batches that ran, which may be fewer than num_steps */
  bool scaler;           /* a factor that the run adapts scales the loss: precision.grad_scaler */
  bool delays;           /* that factor has a least value, or falls after several overflows alone */
  bool uneven_inputs;    /* a rank may have no samples in a micro-batch, whose gradient is then zero */
  bool takes_seed;       /* the backward takes its seed, the gradient of the loss, from the run */
  bool skips;            /* a step may end without its update: optimizer and schedule count updates, not steps */
  bool unscales;         /* the accumulated gradients are a multiple of the step's, whose norm is requested */
  bool norm_pass;        /* the backward applies the updates; it runs once more before, for the gradient's norm alone */
  bool factor;           /* the update multiplies gradients by a number of the run: clipping, unscaling */
  double divisor;        /* of the seed: keeps accumulated gradients about as large as the step's */
  double numerator;      /* unscaling multiplies by it, where it divides by a count or by micro-batches */
  double contributors;   /* unscaling also divides by this number of ranks, whose gradients are summed */
  struct mean mean;      /* with normalize tokens, or without drop_last: what the loss is a mean over; where that is
                            counted, the count is a result of the entry */
};

#endif
