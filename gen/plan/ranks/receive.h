/* Where a stage of a pipeline receives values: where its layers take them, when it would only copy them there. */
#ifndef ACCEL_PLAN_RANKS_RECEIVE_H
#define ACCEL_PLAN_RANKS_RECEIVE_H

#include "gen/program/program.h"

/* Layers of a stage are a loop over a row of carried values, which begins with a copy of what the stage has received.
 * Where such copies are the first statements of a stage, and nothing else of the stage reads what was received, this
 * sets crossing->into to where they copy to, and the stage loses the statements. After the crossings are known. */
void receive_in_place(struct program *program);

#endif
