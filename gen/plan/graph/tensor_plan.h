/* Tensor plan: placements of parameters that the job says (parallelism.tp_plan), before the graph says those of the
 * others. */
#ifndef ACCEL_PLAN_GRAPH_TENSOR_PLAN_H
#define ACCEL_PLAN_GRAPH_TENSOR_PLAN_H

#include "gen/plan/graph/placements.h"

/* Places the parameters that a rule of the job matches, in the order of the rules. False with an error at the rule
 * where it matches nothing, or where the graph cannot have the placement. */
bool place_by_plan(struct placements *placements, struct diagnostics *diags);

/* Whether what uses the parameters that are to be placed as the residual is has parts of its positions. `nodes`: by
 * node id, how its operands are placed; NULL: whole. False with an error at the rule. */
bool check_plan_of_positions(struct placements *placements, struct placement *const *nodes, struct diagnostics *diags);

#endif
