/* Fresh parameters. */
#ifndef RUNTIME_WEIGHTS_INIT_H
#define RUNTIME_WEIGHTS_INIT_H

#include "include/accel/trainer.h"

/* Fills parameter number `which` at `values` by its initialiser: a value is a function of (seed, which, element). */
void rt_init_tensor(const struct accel_tensor *tensor, int which, uint64_t seed, float *values);

/* The same of elements [first, first + count) alone, at values[count]. */
void rt_init_part(const struct accel_tensor *tensor, int which, uint64_t seed, int64_t first, int64_t count,
                  float *values);

#endif
