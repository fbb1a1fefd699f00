/* Numbers of 8 bits on processors: floats rounded to those that E4M3 and E5M2 have (Micikevicius et al., "FP8 Formats
 * for Deep Learning", arXiv:2209.05433), and the scales of tensors. They stay floats, so that products of them are
 * those of a device that multiplies 8 bits and adds up in float32. */
#ifndef ACCEL_CPU_FP8_H
#define ACCEL_CPU_FP8_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* The largest numbers of both. */
#define ACCEL_E4M3_MOST 448.0f
#define ACCEL_E5M2_MOST 57344.0f

/* x to the nearest number, ties to even, of a format of `bits` of mantissa whose normal numbers are from `least` to
 * `most`; beyond them it is `most`. A NaN stays one, and a zero has its sign. A number of the size of x plus 3 2^22 of
 * its last places has no bits below these. */
static inline float accel_round_fp8(float x, int bits, float least, float most) {
  const float size = fabsf(x);
  const float within = size > most ? most : size;
  const float normal = within > least ? within : least;
  uint32_t power;
  memcpy(&power, &normal, sizeof power);
  power = (power & 0x7f800000u) + ((uint32_t)(23 - bits) << 23 | 0x400000u);
  float shift;
  memcpy(&shift, &power, sizeof shift);
  return copysignf((within + shift) - shift, x);
}
static inline float accel_round_e4m3(float x) {
  return accel_round_fp8(x, 3, 0.015625f, ACCEL_E4M3_MOST);
}
static inline float accel_round_e5m2(float x) {
  return accel_round_fp8(x, 2, 0.00006103515625f, ACCEL_E5M2_MOST);
}

/* The largest size of a few numbers, by the thread at hand; one that is not a number does not count. */
static inline float accel_largest_of_group(const float *x, size_t count) {
  float largest = 0.0f;
#pragma omp simd reduction(max : largest)
  for (size_t i = 0; i < count; i++) {
    const float size = fabsf(x[i]);
    largest = size > largest ? size : largest;
  }
  return largest;
}

#ifdef ACCEL_CPU_BF16_H
/* The same of numbers of bfloat16. */
static inline float accel_largest_of_group_bf16(const accel_bf16 *x, size_t count) {
  uint32_t highest = 0;
#pragma omp simd reduction(max : highest)
  for (size_t i = 0; i < count; i++) {
    const uint32_t size = x[i] & 0x7fffu, number = size <= 0x7f80u ? size : 0;
    highest = number > highest ? number : highest;
  }
  return accel_widen((accel_bf16)highest);
}

/* accel_largest_size of numbers of bfloat16. */
static inline float accel_largest_size_bf16(const accel_bf16 *x, size_t count) {
  uint32_t highest = 0;
#pragma omp parallel for simd reduction(max : highest)
  for (size_t i = 0; i < count; i++) {
    const uint32_t bits = x[i] & 0x7fffu;
    highest = bits > highest ? bits : highest;
  }
  return accel_widen((accel_bf16)highest);
}
#endif

/* The factor that brings the largest of a tensor's sizes to `most`; NaN where it is none. */
static inline float accel_fp8_scale(float largest, float most) {
  return (float)((double)most / (largest < 1e-12f ? 1e-12 : (double)largest));
}

/* The scales of blocks are powers of two (OCP Microscaling Formats specification 1.0), numbers of e8m0: from 2^-127 to
 * 2^127. */
static inline float accel_power_of_two(int power) {
  const uint32_t bits = power > -127 ? (uint32_t)(power + 127) << 23 : 0x400000u;
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

/* Where a float's leading bit is; -127 for those below the normal ones, 128 for what is no number. */
static inline int accel_exponent(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return (int)(bits >> 23 & 0xffu) - 127;
}
/* The nearest power of two that e8m0 has. */
static inline int accel_within_e8m0(int power) {
  return power < -127 ? -127 : power > 127 ? 127 : power;
}

/* The power of two that a group's numbers of E4M3 are to be multiplied with, of its largest size. By row: the factor
 * that brings it to 448, rounded to a power of two towards 0, is the inverse (torchao, round_scales_to_power_of_2).
 * Floor: the largest power of two in it over that of E4M3, 2^8 (section 6.3 of the specification). Ceiling: it over
 * 448, rounded up to a power of two (cuBLAS). */
static inline int accel_row_power(float largest) {
  return -accel_exponent(accel_fp8_scale(largest, ACCEL_E4M3_MOST));
}
static inline int accel_floor_power(float largest) {
  return accel_within_e8m0(accel_exponent(largest) - 8);
}
static inline int accel_ceiling_power(float largest) {
  const float ratio = largest / ACCEL_E4M3_MOST;
  const int power = accel_exponent(ratio);
  return accel_within_e8m0(ratio > accel_power_of_two(power) ? power + 1 : power);
}

/* history[0] becomes `largest`, the largest size of a tensor, where that is more; next has the result, and may be
 * history. */
static inline void accel_fp8_note_size(float largest, size_t length, const float *history, float *next) {
  next[0] = history[0] > largest ? history[0] : largest;
  for (size_t i = 1; i < length; i++) next[i] = history[i];
}

/* Delayed scaling, when a batch is over in which a tensor was rounded with `scale`, and its largest size was
 * history[0]: the sizes move by one place, so that the newest is the last one and history[0] is 0. Returns the scale
 * for the next batch: most over the largest size of all of these, or over the newest; the same where there is no such
 * number. */
static inline float accel_fp8_next_scale(float scale, float *history, size_t length, bool of_all, float most) {
  const float newest = history[0];
  float size = newest;
  for (size_t i = 0; i < length; i++) {
    history[i] = i + 1 < length ? history[i + 1] : newest;
    size = of_all && history[i] > size ? history[i] : size;
  }
  history[0] = 0.0f;
  const float ratio = most / size;
  return size > 0.0f && isfinite(size) ? (isinf(ratio) ? 3.40282347e38f : ratio) : scale;
}

#endif
