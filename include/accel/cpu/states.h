/* Optimizers' states in fewer bits: a block of them becomes floats, and these become one again. */
#ifndef ACCEL_CPU_STATES_H
#define ACCEL_CPU_STATES_H

#include <stddef.h>

#include "functions.h"

#include "../states.h"

/* States in bfloat16 as floats. */
static inline void accel_unpack_halves(float *to, const uint16_t *from, size_t count) {
  for (size_t i = 0; i < count; i++) to[i] = accel_widen_state(from[i]);
}

/* Floats as such states, each rounded to the nearest. */
static inline void accel_pack_halves(uint16_t *to, const float *from, size_t count) {
  for (size_t i = 0; i < count; i++) to[i] = accel_round_state(from[i]);
}

/* The same, rounded by chance: by 16 bits from `shift` on of what accel_chance gives for the step and the positions
 * from `position` on. */
static inline void accel_pack_halves_by_chance(uint16_t *to, const float *from, size_t count, uint64_t seed,
                                               uint64_t at, uint64_t position, int shift) {
  for (size_t i = 0; i < count; i++)
    to[i] = accel_round_by_chance(from[i], accel_chance(seed, at, position + i) >> shift);
}

/* Fills a map. */
static inline void accel_fill_map(struct accel_map *map, bool is_signed) {
  map->zero = is_signed ? 127 : 0;
  map->least = is_signed ? 1 : 2;
  map->values[255] = 1.0f;
  for (int power = 0, at = map->zero + 1; power < 7; power++) {
    const int count = map->least << power;
    for (int i = 0; i < count; i++, at++) {
      map->values[at] = (float)(pow(10.0, power - 6) * (0.1 + 0.9 * (i + 0.5) / count));
      if (is_signed) map->values[2 * map->zero - at] = -map->values[at];
    }
  }
  for (int power = 0; power < 8; power++) {
    const int first = map->zero + 1 + map->least * ((1 << power) - 1);
    map->edges[power] = 0.5f * (map->values[first - 1] + map->values[first]);
  }
}

/* The numbers of a block of codes. */
static inline void accel_unpack_codes(float *to, const uint8_t *from, float scale, const struct accel_map *map,
                                      size_t count) {
  for (size_t i = 0; i < count; i++) to[i] = map->values[from[i]] * scale;
}

/* Returns the scale: the largest size in the block. */
static inline float accel_pack_codes(uint8_t *to, const float *from, const struct accel_map *map, size_t count) {
  uint32_t highest = 0; /* among the bits of all sizes, of which the largest has the largest */
#pragma omp simd reduction(max : highest)
  for (size_t i = 0; i < count; i++) {
    const float size = fabsf(from[i]);
    uint32_t bits;
    memcpy(&bits, &size, sizeof bits);
    highest = bits > highest ? bits : highest;
  }
  float largest;
  memcpy(&largest, &highest, sizeof largest);
  const float scale = largest > 0.0f ? largest : 1.0f;
  for (size_t i = 0; i < count; i++) to[i] = accel_code_of(from[i], scale, map);
  return largest;
}

#endif
