/* Partial gradients: of parameters that all ranks have whole, and each uses for its part of the work alone. A rank's
 * gradient of one is a part of a sum over the ranks, which can wait until the step's gradients are complete. */
#ifndef ACCEL_PLAN_GRAPH_PARTIAL_GRADIENTS_H
#define ACCEL_PLAN_GRAPH_PARTIAL_GRADIENTS_H

#include "gen/plan/graph/placements.h"

/* Marks these parameters (partial_gradient): those that only nodes use which ranks divide, in all regions that have a
 * parameter of the name. nodes: by node id, the placements of operands; NULL: ranks do not divide the node. Returns, by
 * value id, whether a value is such a parameter or its copy of 16 bits. */
const bool *mark_partial_gradients(const struct placements *placements, struct placement *const *nodes);

#endif
