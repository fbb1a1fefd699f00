/* A shuffle without a table: a keyed bijection of [0, n), any place of it computed alone. */
#ifndef RUNTIME_RANDOM_PERMUTATION_H
#define RUNTIME_RANDOM_PERMUTATION_H

#include <stdint.h>

/* Where `index` < n goes under the permutation (seed, stream). n >= 1. */
uint64_t rt_permute(uint64_t seed, uint64_t stream, uint64_t n, uint64_t index);

#endif
