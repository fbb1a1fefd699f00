/* What formulas of kernels have in common: their arrays by names. */
#ifndef ACCEL_VERIFY_KERNELS_CASE_H
#define ACCEL_VERIFY_KERNELS_CASE_H

#include <stdio.h>

#include "gen/verify/kernels/kernels.h"

/* An array, and its elements; NULL: there is none of that name. */
static inline const double *given(const struct kernel_case *c, const char *name, int64_t *count) {
  const int i = kernel_array_of(c->kernel, name);
  if (count != NULL) *count = i < 0 ? 0 : c->kernel->arrays[i].count;
  return i < 0 ? NULL : c->in[i];
}

/* One that is written. */
static inline double *made(struct kernel_case *c, const char *name, int64_t *count) {
  const int i = kernel_array_of(c->kernel, name);
  if (count != NULL) *count = i < 0 ? 0 : c->kernel->arrays[i].count;
  return i < 0 ? NULL : c->out[i];
}

/* Whether the function has no other arrays than so many. */
static inline bool has_all(const struct kernel_case *c, int count) {
  return c->kernel->n_arrays == count;
}

static inline void says(struct kernel_case *c, const char *text) {
  snprintf(c->formula, sizeof c->formula, "%s", text);
  c->fits = true;
}

/* The logarithm of the sum of e^x. */
double kernel_log_of_sum(const double *x, int64_t count);

#endif
