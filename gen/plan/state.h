/* State: what of the arena outlives a step. Every member that does is listed here and nowhere else; the arena's map,
 * the plan's figures and the checkpoints follow from the list. */
#ifndef ACCEL_PLAN_STATE_H
#define ACCEL_PLAN_STATE_H

#include "gen/program/program.h"

/* Fills program->states; a program that does not train has none. */
void plan_state(struct program *program);

#endif
