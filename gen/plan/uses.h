/* Uses: how often each value is needed, over all regions. */
#ifndef ACCEL_PLAN_USES_H
#define ACCEL_PLAN_USES_H

#include "gen/ir/graph.h"

/* Counts by value id: inputs of nodes (the parts of a fused node count, not the node), results and gradients. */
int *count_uses(struct arena *arena, const struct graph *graph);

#endif
