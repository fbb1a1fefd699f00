/* Expert parallelism: where rows are sorted by group and each group has parameters of its own, as the experts of a
 * mixture, ranks along an axis of the mesh have some groups each, and rows go to the rank of their group and back. */
#ifndef ACCEL_PLAN_GRAPH_EXPERT_PARALLEL_H
#define ACCEL_PLAN_GRAPH_EXPERT_PARALLEL_H

#include "gen/program/program.h"

/* Gives each of `ranks` ranks along `axis` the same number of groups of each operation over groups (op_ranks.by_group):
 * rank 0 the first ones. Of parameters that only belong to groups of other ranks this program's regions have none;
 * those that stay are PLACED_EXPERT, and every rank has others instead. Rows go to their ranks before the first
 * operation over groups, and come back where an operation needs them as they were, so that elementwise operations
 * between operations over groups work on rows of the rank's own groups. False with an error at `where` where there is
 * no operation over groups, where `ranks` does not divide the number of groups, where a group's operands are not
 * parameters of its own whose names differ in one number, or where parameters are not named in the order of the
 * groups. */
bool plan_expert_parallel(struct program *program, struct builder *builder, enum axis axis, int64_t ranks,
                          struct location where, struct diagnostics *diags);

#endif
