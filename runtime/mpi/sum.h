/* Sums over ranks of values in memory. */
#ifndef RUNTIME_MPI_SUM_H
#define RUNTIME_MPI_SUM_H

#include "include/accel/dtype.h"

#include <stddef.h>

/* The sum of `count` values from each of n_from arrays, in each of n_to, which may be among them. In the order of a
 * tree: neighbours first, then pairs of them, and so on, as of MPI's recursive doubling over a power of two ranks; in
 * float32, or in 16 bits with each sum rounded to them. */
void rt_sum_ranks(enum accel_dtype dtype, char *const *to, int n_to, const char *const *from, int n_from, size_t count);

#endif
