/* Storage: what follows from where storages are in memory. */
#ifndef ACCEL_PROGRAM_STORAGE_H
#define ACCEL_PROGRAM_STORAGE_H

#include "gen/program/program.h"

/* The storage whose memory this one uses: itself, unless it took over another's. */
struct storage *storage_root(struct storage *storage);

/* The frame of a forward call in the memory of a function alone; NULL: it has none. */
struct storage *own_frame(const struct function *function, const struct node *call);

/* The frame of a forward call in the memory of a function or of its forward function; NULL: its callee saves nothing.
 */
struct storage *frame_of(const struct function *function, const struct node *call);

/* The function whose saved values a function takes: itself, or the forward of a backward one. */
const struct function *saving_function(const struct function *function);

/* Whether a function is the deferred part of a backward one. */
bool is_deferred(const struct function *function);

/* Whether a function takes a pointer to its result `index`: to give it, or as what the rest of it gave. */
bool takes_result(const struct function *function, int index);

/* Whether a function takes a pointer to saved values: a forward may save nothing itself where its backward keeps values
 * for what it defers. */
bool takes_saved(const struct function *function);

/* Bytes of all copies of a storage. */
int64_t storage_bytes(const struct storage *storage);

/* Every member of the arena starts at a multiple of this. */
int64_t arena_aligned(int64_t bytes);

/* Which copy of a row of carried values an iteration takes of a stacked input. */
int stacked_copy(const struct view *view, int iteration);

#endif
