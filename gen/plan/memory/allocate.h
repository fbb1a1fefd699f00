/* Allocate: memory of functions. Scratch storages that are never live together share a slot. An output takes over the
 * memory of an input whose last use is its step, if the operation allows it. Sizes are exact. */
#ifndef ACCEL_PLAN_MEMORY_ALLOCATE_H
#define ACCEL_PLAN_MEMORY_ALLOCATE_H

#include "gen/plan/program.h"

/* Makes the frames of calls; fills slots, saved_bytes and scratch_bytes of every function. */
void allocate_memory(struct program *program);

/* The storage whose memory this one uses: itself, unless it took over another's. */
struct storage *storage_root(struct storage *storage);

/* The frame of a forward call in the memory of a function or of its forward function; NULL: its callee saves nothing.
 */
struct storage *frame_of(const struct function *function, const struct node *call);

/* Bytes of all copies of a storage. */
int64_t storage_bytes(const struct storage *storage);

/* Every member of the arena starts at a multiple of this. */
int64_t arena_aligned(int64_t bytes);

/* Which copy of a row of carried values an iteration takes of a stacked input. */
int stacked_copy(const struct place *place, int iteration);

#endif
