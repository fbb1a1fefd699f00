/* Constants: the scalars in the initial value of a constant variable. */
#ifndef ACCEL_AUDIT_INTERP_CONSTANT_H
#define ACCEL_AUDIT_INTERP_CONSTANT_H

#include "gen/c/tree.h"

/* A scalar of an initial value. */
struct constant {
  int64_t offset, size; /* bytes */
  const struct syntax *value;
};

struct constants {
  struct constant *items;
  int count, capacity;
};

/* The scalars of a variable's initial value, in source order; a later one at the same offset
 * overrides an earlier one. Scalars that the initial value does not name are 0. */
struct constants constants_of(struct arena *arena, const struct variable *variable);

/* Evaluates an integer constant expression. False when the node is none. */
bool constant_integer(const struct syntax *node, int64_t *value);

#endif
