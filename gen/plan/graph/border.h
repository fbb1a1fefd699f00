/* Border: what happens where one step ends and the next begins. It is decided here; a program holds what it needs and
 * nothing of the rest. */
#ifndef ACCEL_PLAN_GRAPH_BORDER_H
#define ACCEL_PLAN_GRAPH_BORDER_H

#include "gen/ir/builder.h"
#include "gen/plan/graph/differentiate.h"
#include "gen/spec/job.h"

struct program;

struct border {
  bool short_steps; /* a step may have fewer micro-batches than num_steps: the last one of an epoch */
  bool counts;      /* a step is the mean over what its micro-batches count: the entry's second result */
  bool by_share;    /* a step is the mean over the micro-batches that ran, be they fewer than num_steps */
  bool scaler;      /* the loss is scaled by a number that the run changes */
  bool joins;       /* a rank may have no samples in a micro-batch, whose gradient is then nothing */
  bool skips;       /* a step may end without its update, so steps are not what optimizer and schedule count */
  bool unscales;    /* the gradients that add up are a multiple of the step's, and the norm is asked of the latter */
  bool measures;    /* the update is a part of the backward, which runs once before for the gradient's norm alone */
  bool factor;      /* the update multiplies gradients by a number that is known only now: clipping, unscaling */
  double divisor;   /* of the seed: gradients of about the size that the step's have */
  double sharers;   /* unscaling divides by so many ranks besides, whose gradients were added up */
  struct mean mean; /* with normalize tokens, or without drop_last: how losses join; where it counts, the count is a
                       result of the entry */
};

/* Sets program->border, by the job and by what the loss is. With accumulation.normalize tokens the entry may get a
 * second result, "counted". False with an error when the loss is then no mean, or cannot leave samples out that are not
 * there. */
bool plan_border(struct program *program, struct builder *builder, struct diagnostics *diags);

/* Whether a batch may have places without a target: the entry's loss, which is this mean, counts targets of the data,
 * and one value of them is none, which becomes program->no_target. False with an error otherwise. */
bool leave_targets_out(struct program *program, const struct region *entry, const struct mean *mean,
                       struct diagnostics *diags);

/* What the gradient of a micro-batch's loss starts from. */
struct seed border_seed(const struct program *program);

#endif
