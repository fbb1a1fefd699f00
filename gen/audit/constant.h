/* Constants: what the initial value of a constant variable says of its parts. */
#ifndef ACCEL_AUDIT_CONSTANT_H
#define ACCEL_AUDIT_CONSTANT_H

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

/* The scalars of a variable's initial value, in the order that they are written in; a later one at the same place
 * takes the place of an earlier. Scalars that it does not name are 0. */
struct constants constants_of(struct arena *arena, const struct variable *variable);

/* The integer that a constant expression says. False when it is none. */
bool constant_integer(const struct syntax *node, int64_t *value);

#endif
