/* Undivided: which matmuls and tables ranks that divide tensors have whole, and why, for people. */
#ifndef ACCEL_PLAN_GRAPH_UNDIVIDED_H
#define ACCEL_PLAN_GRAPH_UNDIVIDED_H

#include "gen/plan/graph/placements.h"

/* Sets program->ranks.placed, before shapes become those of a rank's parts. */
void note_undivided(struct placements *placements);

#endif
