/* Keys of random numbers, each made of the one above it. */
#ifndef ACCEL_CPU_DRAWS_H
#define ACCEL_CPU_DRAWS_H

#include <stdint.h>

/* The key of random numbers of call `number`, iteration i, inside of what runs under the key `stream`: the finaliser of
 * SplitMix64 (Steele, Lea, Flood, OOPSLA 2014) over a position that no other call has. */
static inline uint64_t accel_stream(uint64_t stream, uint64_t number, uint64_t i) {
  uint64_t z = stream + 0x9E3779B97F4A7C15u * (number * 65536 + i + 1);
  z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
  z = (z ^ z >> 27) * 0x94D049BB133111EBu;
  return z ^ z >> 31;
}

/* The key under which call 0 gives its iteration j the key that call `number` gives its iteration i + j. */
static inline uint64_t accel_stream_before(uint64_t stream, uint64_t number, uint64_t i) {
  return stream + 0x9E3779B97F4A7C15u * (number * 65536 + i);
}

#endif
