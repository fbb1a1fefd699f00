/* The functions of accel/model.h, each with a way to call it on random shapes. */
#ifndef TESTS_OPS_CASES_H
#define TESTS_OPS_CASES_H

#include <stddef.h>

#include "tests/ops/fixture.h"

/* Elements of a random tensor. */
enum { MOST = 400 };

struct op_case {
  const char *function;
  void (*arrange)(struct fixture *fixture); /* adds random arguments */
};

/* A file's cases; NULL ends them. */
extern const struct op_case op_cases[], shape_cases[], image_cases[], index_cases[];

/* Those with a gradient, by number from 0 on; NULL after the last one. */
static inline const struct op_case *op_case_at(int number) {
  const struct op_case *const lists[] = {op_cases, shape_cases, image_cases};
  for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++)
    for (const struct op_case *at = lists[i]; at->function != NULL; at++)
      if (number-- == 0) return at;
  return NULL;
}

#endif
