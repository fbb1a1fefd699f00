/* Numbers of 8 bits on processors. They stay floats, so that products of them are those of a device that multiplies 8
 * bits and adds up in float32. */
#ifndef ACCEL_CPU_FP8_H
#define ACCEL_CPU_FP8_H

#include "functions.h"
#include "norms.h"

#include "../fp8.h"

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

/* history[0] becomes `largest`, the largest size of a tensor, where that is more; next has the result, and may be
 * history. */
static inline void accel_fp8_note_size(float largest, size_t length, const float *history, float *next) {
  next[0] = history[0] > largest ? history[0] : largest;
  for (size_t i = 1; i < length; i++) next[i] = history[i];
}

/* history[0] becomes `size`; next has the result, and may be history. */
static inline void accel_fp8_set_size(float size, size_t length, const float *history, float *next) {
  next[0] = size;
  for (size_t i = 1; i < length; i++) next[i] = history[i];
}

/* x factor, rounded to numbers of E4M3, times `back`. */
static inline void accel_fp8_round_scaled(float *x, size_t count, float factor, float back) {
#pragma omp parallel for simd
  for (size_t i = 0; i < count; i++) x[i] = accel_round_e4m3(x[i] * factor) * back;
}

/* Numbers of a tensor to those of E4M3 over a power of two that brings the largest one to 448. */
static inline void accel_fp8_round_tensor(float *x, size_t count) {
  const float factor = accel_fp8_power(accel_largest_size(x, count), ACCEL_E4M3_MOST);
  accel_fp8_round_scaled(x, count, factor, 1.0f / factor);
}

/* The same to those of fp16. */
static inline void accel_fp16_round_tensor(float *x, size_t count) {
  const float factor = accel_fp8_power(accel_largest_size(x, count), 65504.0f), inverse = 1.0f / factor;
#pragma omp parallel for simd
  for (size_t i = 0; i < count; i++) x[i] = accel_round_fp16(x[i] * factor) * inverse;
}

/* The sizes of a tensor move by one place, so that the newest is the last one, and history[0] is 0. Returns the largest
 * of all of these. */
static inline float accel_fp8_move_sizes(float newest, float *history, size_t length) {
  float largest = newest;
  for (size_t i = 0; i < length; i++) {
    history[i] = i + 1 < length ? history[i + 1] : newest;
    largest = history[i] > largest ? history[i] : largest;
  }
  history[0] = 0.0f;
  return largest;
}

/* MS-AMP's scale of a tensor, when a step is over whose largest size was history[0]: for as many steps as the history
 * is long that of the tensor at hand is taken, and -scale is how many have been; then it is the power of two by the
 * largest of these sizes. What is no number is left out, and the count begins again. */
static inline float accel_fp8_next_power(float scale, float *history, size_t length, float most) {
  const bool number = isfinite(history[0]);
  const float largest = accel_fp8_move_sizes(number ? history[0] : 0.0f, history, length);
  const float power = accel_fp8_power(largest, most), taken = 1.0f - scale;
  return number ? (scale > 0.0f || taken >= (float)length ? power : -taken) : 0.0f;
}

/* Delayed scaling, when a batch is over in which a tensor was rounded with `scale`, and its largest size was
 * history[0]: the sizes move by one place, so that the newest is the last one and history[0] is 0. Returns the scale
 * for the next batch: most over the largest size of all of these, or over the newest; the same where there is no such
 * number. */
static inline float accel_fp8_next_scale(float scale, float *history, size_t length, bool of_all, float most) {
  const float newest = history[0], largest = accel_fp8_move_sizes(newest, history, length);
  return accel_fp8_scale_after(scale, of_all ? largest : newest, most);
}

#endif
