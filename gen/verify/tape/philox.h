/* Philox: the random words of docs/runtime.md, and the keys that they are drawn under. */
#ifndef ACCEL_VERIFY_TAPE_PHILOX_H
#define ACCEL_VERIFY_TAPE_PHILOX_H

#include <stdint.h>

/* SplitMix64 (Steele, Lea, Flood, OOPSLA 2014): by how much a state is more than the one before, and its finaliser. */
#define SPLITMIX_STEP UINT64_C(0x9E3779B97F4A7C15)
uint64_t splitmix_mixed(uint64_t z);

/* The key K(key, number, i) of call `number`, iteration i, of what runs under a key. */
uint64_t draw_key(uint64_t key, uint64_t number, uint64_t i);

/* Word i of draw `site` under a key: word i % 4 of Philox-4x32-10 (Salmon, Moraes, Dror, Shaw, SC 2011) at counter
 * (i / 4, site). */
uint32_t draw_word(uint64_t key, uint32_t site, uint64_t i);

#endif
