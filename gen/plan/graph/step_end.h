/* How a step of the optimizer ends, after its micro-batches: how their losses and gradients become one mean, and
 * whether and with which factor the update is applied. The plan decides this once; a program has only the code that it
 * needs. */
#ifndef ACCEL_PLAN_GRAPH_STEP_END_H
#define ACCEL_PLAN_GRAPH_STEP_END_H

#include "gen/ir/builder.h"
#include "gen/plan/graph/differentiate.h"
#include "gen/spec/job.h"

struct program;

struct step_end {
  bool short_steps;      /* a step may have fewer micro-batches than num_steps: the last one of an epoch */
  bool counts;           /* the loss of a step is a mean over what its micro-batches count: the entry's second result */
  bool by_micro_batches; /* it is a mean over the micro-batches that ran, which may be fewer than num_steps */
  bool scaler;           /* a factor that the run adapts scales the loss: precision.grad_scaler */
  bool uneven_inputs;    /* a rank may have no samples in a micro-batch, whose gradient is then zero */
  bool skips;            /* a step may end without its update: optimizer and schedule count updates, not steps */
  bool unscales;         /* the accumulated gradients are a multiple of the step's, whose norm is asked for */
  bool norm_pass;        /* the backward applies the updates; it runs once more before, for the gradient's norm alone */
  bool factor;           /* the update multiplies gradients by a number of the run: clipping, unscaling */
  double divisor;        /* of the seed: keeps accumulated gradients about as large as the step's */
  double contributors;   /* unscaling also divides by this number of ranks, whose gradients are summed */
  struct mean mean;      /* with normalize tokens, or without drop_last: what the loss is a mean over; where that is
                            counted, the count is a result of the entry */
};

/* Sets program->step_end from the job and from what the loss is a mean over. With accumulation.normalize tokens the
 * entry may get a second result, "counted". False with an error when the loss is then no mean, or cannot leave out
 * samples that the data does not have. */
bool plan_step_end(struct program *program, struct builder *builder, struct diagnostics *diags);

/* Lets a batch have positions without a target. The entry's loss, which is this mean, counts targets of the data, and
 * one value of them stands for no target: it becomes program->no_target. False with an error for any other loss. */
bool leave_targets_out(struct program *program, const struct region *entry, const struct mean *mean,
                       struct diagnostics *diags);

/* The seed of the backward: the gradient of a micro-batch's loss. */
struct seed loss_seed(const struct program *program);

#endif
