/* Optimizers' states in fewer bits: functions that are the same text on every device. The header of a device that
 * includes this says in ACCEL_FUNCTION what a function begins with. */
#ifndef ACCEL_STATES_H
#define ACCEL_STATES_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* States in bfloat16, the upper half of a float. */
ACCEL_FUNCTION float accel_widen_state(uint16_t half) {
  const uint32_t bits = (uint32_t)half << 16;
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

/* Rounded to the nearest, ties to even. */
ACCEL_FUNCTION uint16_t accel_round_state(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  const uint32_t nearest = (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16, nan = bits >> 16 | 0x40u;
  return (uint16_t)((bits & 0x7fffffffu) > 0x7f800000u ? nan : nearest);
}

/* 64 bits of chance for the element at a position of the weights in step `at`: the finaliser of SplitMix64 (Steele,
 * Lea, Flood, OOPSLA 2014) over a counter. */
ACCEL_FUNCTION uint64_t accel_chance(uint64_t seed, uint64_t at, uint64_t position) {
  uint64_t z = ((at + 1) << 40 ^ position) * 0x9E3779B97F4A7C15u + seed;
  z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
  z = (z ^ z >> 27) * 0x94D049BB133111EBu;
  return z ^ z >> 31;
}

/* x as the neighbour below or above, in size: that one as often as x is near to it, by 16 bits of chance. */
ACCEL_FUNCTION uint16_t accel_round_by_chance(float x, uint64_t chance) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  const uint32_t either = (bits + (uint32_t)(chance & 0xffffu)) >> 16, nan = bits >> 16 | 0x40u;
  return (uint16_t)((bits & 0x7fffffffu) > 0x7f800000u ? nan : either);
}

/* The numbers that 8 bits stand for, from -1 or 0 to 1, times the scale of their block (Dettmers et al.,
 * arXiv:2110.02861): seven powers of ten, each with twice as many numbers, evenly set, as the one below. */
struct accel_map {
  float values[256];
  int zero, least; /* the code of 0; how many numbers the lowest power has */
  float edges[8];  /* from edges[p] on a size is nearest to numbers of power p, from edges[7] on to 1 */
};

/* The code of x in a block of this scale. What is negative stays so, and never becomes 0. */
ACCEL_FUNCTION uint8_t accel_code_of(float x, float scale, const struct accel_map *map) {
  static const float units[] = {1e6f, 1e5f, 1e4f, 1e3f, 1e2f, 1e1f, 1.0f};
  const float size = fabsf(x) / scale;
  float unit = 1e6f;
  int numbers = map->least;
#ifdef __cplusplus
#pragma unroll
#else
#pragma GCC unroll 6
#endif
  for (int power = 1; power < 7; power++) {
    const bool reaches = size > map->edges[power];
    unit = reaches ? units[power] : unit;
    numbers = reaches ? map->least << power : numbers;
  }
  int cell = (int)((size * unit - 0.1f) * ((float)numbers / 0.9f));
  cell = cell < 0 ? 0 : cell < numbers ? cell : numbers - 1;
  int distance = size > map->edges[0] ? 1 - map->least + numbers + cell : 0;
  const int below = distance < 1 ? 1 : distance;
  distance = size > map->edges[7] ? 255 - map->zero : distance;
  return (uint8_t)(map->zero + (x < 0.0f ? -below : distance));
}

#endif
