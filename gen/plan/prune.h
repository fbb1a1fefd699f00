/* Prune: takes out what nobody needs. */
#ifndef ACCEL_PLAN_PRUNE_H
#define ACCEL_PLAN_PRUNE_H

#include "gen/ir/graph.h"

/* Removes every node, calls excepted, whose outputs no node, result or gradient uses. */
void prune(struct graph *graph);

#endif
