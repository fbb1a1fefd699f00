/* Alias: puts what the forward saves into memory of gradients that the backward has not written yet.
 *
 * A gradient is written by a certain statement of the backward, and nothing reads it before: until then its memory is
 * free. A saved storage may be there if the last statement that touches it comes before the first one that writes any
 * of the gradients in its memory. Not reused are gradients that no statement writes, those that are cleared before the
 * backward, and the padding between gradients: the norm and the update read all of them.
 *
 * This needs gradients that hold nothing from one backward to the next and that nothing else reads: one micro-batch a
 * step, one rank, and no optimizer that stores an average of the weights there. */
#ifndef ACCEL_PLAN_MEMORY_ALIAS_H
#define ACCEL_PLAN_MEMORY_ALIAS_H

#include "gen/program/program.h"

/* What is not worth its lines: less than this fraction of the arena, one in so many bytes. */
enum { LEAST_OF_ARENA = 50 };

/* After the figures, which are then to be counted again. Fills program->aliases and subtracts their bytes from
 * saved_bytes of functions. Does nothing if that saves less than a fiftieth of the arena.
 *
 * A loop's frames are one array. If those of the first iterations do not fit and the others would,
 * program->aliases.peeled names the loop: planned again with these iterations peeled off (peel_loops), the program may
 * take less memory. */
void alias_gradients(struct program *program);

/* Bytes of activations that are in memory of gradients, and count as theirs. */
int64_t aliased_bytes(const struct program *program);

/* Peels the first iterations off each loop in `peeled`, so that they are calls of their own. NULL: none. */
void peel_loops(struct graph *graph, const struct peeled_loops *peeled);

#endif
