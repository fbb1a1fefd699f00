/* State: what of the arena outlives a step. Every member that does is listed here and nowhere else; the arena's map,
 * the plan's figures and the checkpoints follow from the list. */
#ifndef ACCEL_PLAN_STATE_H
#define ACCEL_PLAN_STATE_H

#include "gen/plan/program.h"

/* Fills program->states; a program that does not train has none. */
void plan_state(struct program *program);

/* Bytes of a state's array in the arena. */
int64_t state_bytes(const struct state *state);

/* Bytes of a copy of all states, from which a checkpoint is written while steps go on; 0 where none is kept. */
int64_t state_copy_bytes(const struct program *program);

#endif
