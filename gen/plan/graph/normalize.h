/* Normalize: what a loss is a mean over, so that the losses and gradients of micro-batches combine into those of one
 * big batch. */
#ifndef ACCEL_PLAN_GRAPH_NORMALIZE_H
#define ACCEL_PLAN_GRAPH_NORMALIZE_H

#include "gen/ir/builder.h"
#include "gen/program/program.h"

/* How the first result of an entry, its loss, combines with those of other batches. Where it is a mean over what is
 * counted, the count is a value of the entry; called regions hand it on. Where it is no mean, *cause is the operation
 * that prevents it; NULL when none does. */
struct mean loss_mean(struct builder *builder, const struct region *entry, const struct node **cause);

/* Whether data can hold this as a target: what tokens and labels never are is put in by masking, packing and
 * files that say which tokens are trained on. */
bool target_occurs(const struct job *job, int64_t target);

/* Makes the count of such a mean the entry's last result, "counted", and returns it. */
struct value *give_count(struct builder *builder, struct region *entry, struct mean mean);

#endif
