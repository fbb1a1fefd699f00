/* Unsharded: which matmuls and tables ranks that divide tensors have whole, and why, human-readable. */
#ifndef ACCEL_PLAN_GRAPH_UNSHARDED_H
#define ACCEL_PLAN_GRAPH_UNSHARDED_H

#include "gen/plan/graph/placements.h"

/* Sets program->ranks.placed, before shapes become those of a rank's parts. */
void note_unsharded(struct placements *placements);

#endif
