/* Lend: what the forward keeps lies in memory of gradients that the backward has not written yet.
 *
 * A gradient is written by a certain statement of the backward, and nobody reads it before: until then its memory is
 * free. A saved storage may lie there when the last statement that touches it comes before the first one that writes
 * any gradient below it. Gradients that no statement writes, those that are cleared before the backward, and the
 * padding between them lend nothing: the norm and the update go over all of them.
 *
 * It is done where gradients hold nothing from one backward to the next and nobody else reads them: with one
 * micro-batch a step, one rank, and no optimizer that puts an average of the weights there. */
#ifndef ACCEL_PLAN_MEMORY_LEND_H
#define ACCEL_PLAN_MEMORY_LEND_H

#include "gen/plan/program.h"

/* Memory of gradients that the backward writes later, with a saved storage until then. */
struct loan {
  struct storage *storage;
  const char *name; /* unique among all loans */
  int64_t at;       /* bytes from the start of the gradients */
};

/* Repeated calls whose first iterations would better be a call of their own. */
struct apart {
  int node;  /* of the graph, by its id */
  int count; /* iterations */
};
struct apart_list {
  struct apart *items;
  int count, capacity;
};

/* What is not worth its lines: less than this share of the arena, one in so many bytes. */
enum { LEAST_OF_ARENA = 50 };

/* After the figures. Fills program->loans, and makes saved_bytes of functions and the figures less by them; nothing
 * where that is too little of the arena.
 *
 * A loop's frames are one array. Where the first iterations' do not fit and the others would, program->apart says so:
 * planned anew with these iterations apart (part_loops), the program may take less. */
void lend(struct program *program);

/* Bytes of activations that lie in memory of gradients, and count as theirs. */
int64_t lent_bytes(const struct program *program);

/* Lets the first iterations of the loops in `apart` be calls of their own. */
void part_loops(struct graph *graph, const struct apart_list *apart);

#endif
