/* Liveness over the backward: when each gradient is written for the first time, and which statement is the last to use
 * what the forward saves. Statements are counted through all calls and iterations. */
#ifndef ACCEL_PLAN_MEMORY_LIVENESS_H
#define ACCEL_PLAN_MEMORY_LIVENESS_H

#include "gen/program/program.h"

/* A saved storage of a function that runs once in a step, so that it can have any address: memory of one value, a row
 * of copies, or the frames of a call's iterations, each of which is one copy. */
struct live_buffer {
  struct storage *storage;
  int64_t *last; /* by copy: the last statement of the backward that touches it; -1: none does */
};

struct liveness {
  struct {
    struct live_buffer *items;
    int count, capacity;
  } buffers;
  int64_t *written; /* by weight: the statement that first writes its gradient; -1: none does */
};

/* After the allocate pass, of a program with a backward. Statements count from 1; at 0 gradients are cleared. */
void find_liveness(struct program *program, struct liveness *liveness);

/* Whether a forward function runs once in a program: no other call of it is anywhere, and its caller runs once. */
bool runs_once(const struct program *program, const struct function *function);

#endif
