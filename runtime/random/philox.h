/* The counter-based generator of every random number: a number is a function of (seed, stream, index), so it does
 * not depend on threads, on order, or on where a run was resumed. */
#ifndef RUNTIME_RANDOM_PHILOX_H
#define RUNTIME_RANDOM_PHILOX_H

#include <stdint.h>

/* The streams of the runtime. A stream's top byte names its use; 0 is left to emitted programs. */
#define RT_STREAM(use, rest) ((uint64_t)(use) << 56 | (uint64_t)(rest))
enum rt_use { RT_USE_INIT = 1, RT_USE_SHUFFLE, RT_USE_OFFSET, RT_USE_SAMPLE, RT_USE_MASK, RT_USE_PART, RT_USE_DRAW };

struct philox_block {
  uint32_t word[4];
};

/* Philox-4x32-10 (Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011, section 4.3). */
struct philox_block rt_philox(struct philox_block counter, uint32_t key0, uint32_t key1);

/* Block `index` of a stream: the words 4 * index … 4 * index + 3 of accel_random. */
struct philox_block rt_philox_block(uint64_t seed, uint64_t stream, uint64_t index);

/* Blocks first … first + PHILOX_LANES - 1 in one pass, as vector instructions: word i of block first + lane in
 * words[i][lane]. */
enum { PHILOX_LANES = 16 };
void rt_philox_lanes(uint64_t seed, uint64_t stream, uint64_t first, uint32_t words[4][PHILOX_LANES]);

#endif
