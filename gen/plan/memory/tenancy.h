/* Tenancy: the backward statement by statement, through all calls and iterations: when each gradient is written for
 * the first time, and until when what the forward has kept is in use. */
#ifndef ACCEL_PLAN_MEMORY_TENANCY_H
#define ACCEL_PLAN_MEMORY_TENANCY_H

#include "gen/plan/program.h"

/* A saved storage of a function that runs once in a step, so that it can lie anywhere: memory of one value, a row of
 * copies, or the frames of a call's iterations, each of them as a whole. */
struct tenant {
  struct storage *storage;
  int64_t *last; /* by copy: the last statement of the backward that touches it; -1: none does */
};

struct tenancy {
  struct {
    struct tenant *items;
    int count, capacity;
  } tenants;
  int64_t *written; /* by weight: the statement that first writes its gradient; -1: none does */
};

/* After the place pass, of a program with a backward. Statements count from 1; at 0 gradients are cleared. */
void find_tenancy(struct program *program, struct tenancy *tenancy);

/* Whether a forward function runs once in a program: no other call of it is anywhere, and its caller runs once. */
bool runs_once(const struct program *program, const struct function *function);

#endif
