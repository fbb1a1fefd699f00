/* Prune: takes out what nobody needs. */
#ifndef ACCEL_PLAN_GRAPH_PRUNE_H
#define ACCEL_PLAN_GRAPH_PRUNE_H

#include "gen/ir/graph.h"

/* Removes every node whose outputs no node, result or gradient uses, but for calls whose gradients or saved values are
 * wanted; and every result of a region that none of its calls uses. A region that nothing calls any more keeps its
 * parameters alone, for its backward; a backward region that nothing calls keeps nothing. */
void prune(struct graph *graph);

#endif
