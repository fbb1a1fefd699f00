/* A shuffle without a table: a keyed bijection of [0, n), each index computed alone. */
#ifndef RUNTIME_RANDOM_PERMUTATION_H
#define RUNTIME_RANDOM_PERMUTATION_H

#include <stdint.h>

enum { PERMUTED_AT_ONCE = 64 };

/* Replaces each of `count` <= PERMUTED_AT_ONCE indices below n by where it goes under the permutation (seed,
 * stream). n >= 1. Many in one call take little longer than one. */
void rt_permute_all(uint64_t seed, uint64_t stream, uint64_t n, int count, uint64_t *indices);

/* The same of one index. */
uint64_t rt_permute(uint64_t seed, uint64_t stream, uint64_t n, uint64_t index);

#endif
