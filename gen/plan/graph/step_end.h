/* Decides how a step of the optimizer ends, once; a program has only the code that it needs. */
#ifndef ACCEL_PLAN_GRAPH_STEP_END_H
#define ACCEL_PLAN_GRAPH_STEP_END_H

#include "gen/ir/builder.h"
#include "gen/plan/graph/differentiate.h"
#include "gen/program/program.h"

/* Sets program->step_end from the job and from what the loss is a mean over. With accumulation.normalize tokens the
 * entry may get a second result, "counted". False with an error when the loss is then no mean, or cannot leave out
 * samples that the data does not have. */
bool plan_step_end(struct program *program, struct builder *builder, struct diagnostics *diags);

/* Lets a batch have positions without a target. The entry's loss, which is this mean, counts targets of the data, and
 * one value of them means no target: it becomes program->data.no_target. False with an error for any other loss.
 */
bool leave_targets_out(struct program *program, const struct region *entry, const struct mean *mean,
                       struct diagnostics *diags);

/* Where micro-batches count by tokens, lets files of tokens say which ones are trained on: sets
 * program->data.counts_targets, and ->no_target, if the entry's loss, which is this mean, counts targets of the data.
 */
void count_targets(struct program *program, const struct region *entry, const struct mean *mean);

/* The seed of the backward: the gradient of a micro-batch's loss. */
struct seed loss_seed(const struct program *program);

#endif
