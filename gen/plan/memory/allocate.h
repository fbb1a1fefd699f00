/* Allocate: memory of functions. Scratch storages that are never live together share a slot. An output takes over the
 * memory of an input whose last use is its step, if the operation allows it. Sizes are exact. */
#ifndef ACCEL_PLAN_MEMORY_ALLOCATE_H
#define ACCEL_PLAN_MEMORY_ALLOCATE_H

#include "gen/program/program.h"

/* Makes the frames of calls; fills slots, saved_bytes and scratch_bytes of every function. */
void allocate_memory(struct program *program);

#endif
