/* Uses: how often each value is needed, over all regions. */
#ifndef ACCEL_PLAN_GRAPH_USES_H
#define ACCEL_PLAN_GRAPH_USES_H

#include "gen/ir/graph.h"

/* Counts by value id: inputs of nodes (the parts of a fused node count, not the node), results and gradients. */
int *count_uses(struct arena *arena, const struct graph *graph);

/* Whether a node of the region in front of `position` uses the value. */
bool is_used_before(const struct region *region, const struct value *value, int position);

/* Whether loops over elements take a value of the region, or a view of it. */
bool goes_to_loops(const struct region *region, const struct value *value);

#endif
