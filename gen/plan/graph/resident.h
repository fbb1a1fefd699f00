/* Residents: what stays in memory of layers whose weights may leave it: what a text generator keeps of earlier
 * positions, and what a trainer changes. */
#ifndef ACCEL_PLAN_GRAPH_RESIDENT_H
#define ACCEL_PLAN_GRAPH_RESIDENT_H

#include "gen/program/program.h"

/* Gives regions that have such parameters scopes of their own for them, below resident_scope (gen/program/weights.h) in
 * the model. Before differentiate; in a generator after plan_decoding, in a trainer once it is known what is frozen. */
void separate_resident(struct program *program);

#endif
