/* Normalize: what a loss is a mean over, so that the losses and gradients of micro-batches join into those of one big
 * batch. */
#ifndef ACCEL_PLAN_NORMALIZE_H
#define ACCEL_PLAN_NORMALIZE_H

#include "gen/ir/builder.h"
#include "gen/plan/program.h"

/* How the entry's first result, its loss, joins with those of other batches. Where it is a mean over what is counted,
 * the count becomes the entry's second result and is that of the mean; called regions hand it on. Where it is no mean,
 * *cause is the operation that stands in the way; NULL when none does. */
struct mean loss_mean(struct program *program, struct builder *builder, const struct node **cause);

#endif
