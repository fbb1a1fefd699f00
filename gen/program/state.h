/* State: the memory of what outlives a step. */
#ifndef ACCEL_PROGRAM_STATE_H
#define ACCEL_PROGRAM_STATE_H

#include "gen/program/program.h"

/* Bytes of a state's array in the arena. */
int64_t state_bytes(const struct state *state);

/* What a parameter has of a state; NULL: nothing, or all as the weights have it. */
const struct state_slice *state_slice_of(const struct program *program, const struct state *state,
                                         const struct weight *weight);

/* Bytes of a copy of all states, from which a checkpoint is written while steps continue; 0 where none is kept, as with
 * states on a disk, where steps wait for a save. */
int64_t state_copy_bytes(const struct program *program);

/* Bytes of a bucket of all states that are on a disk. */
int64_t disk_slot_bytes(const struct program *program);

#endif
