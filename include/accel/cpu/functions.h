/* Functions of numbers that kernels call. They are branch-free, so that a loop over them vectorizes without
 * -ffast-math; their errors are measured over all floats by tests/ops/kernels/test_support.py. Coefficients are our own
 * minimax fits (weighted least squares by Lawson's iteration, in float64). */
#ifndef ACCEL_CPU_FUNCTIONS_H
#define ACCEL_CPU_FUNCTIONS_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* e^x for x up to 88.72283: x = n ln 2 + r (Cody and Waite 1980), e^r by a minimax polynomial, 2^n added to the
 * exponent's bits. Within 1.1 ulp; 0 where the result would not be a normal number; of a NaN, anything. */
static inline float accel_exp_finite(float x) {
  const float lowest = -87.33654f, to_integer = 12582912.0f;
  const float inside = lowest > x ? lowest : x;
  const float shifted = inside * 1.44269504f + to_integer;
  const float n = shifted - to_integer;
  const float r = (inside - n * 0.693359375f) + n * 2.12194440e-4f;
  float p = 0.00138144663f;
  p = p * r + 0.00836878047f;
  p = p * r + 0.0416683942f;
  p = p * r + 0.166665201f;
  p = p * r + 0.499999934f;
  float y = (p * (r * r) + r) + 1.0f;
  uint32_t bits, exponent;
  memcpy(&bits, &y, sizeof bits);
  memcpy(&exponent, &shifted, sizeof exponent);
  bits += exponent << 23;
  memcpy(&y, &bits, sizeof y);
  return x < lowest ? 0.0f : y;
}

/* e^x, infinity above the largest number. */
static inline float accel_exp(float x) {
  const float highest = 88.72283f, y = accel_exp_finite(highest < x ? highest : x);
  return x <= highest ? y : x + INFINITY; /* a NaN stays one */
}

/* ln x: x = 2^n (1 + f) with 1 + f in [sqrt(1/2), sqrt(2)), ln(1 + f) by a minimax polynomial. Within 1.5 ulp. */
static inline float accel_log(float x) {
  const float normal = x < 1.17549435e-38f ? x * 8388608.0f : x;
  uint32_t bits;
  memcpy(&bits, &normal, sizeof bits);
  const int32_t n = (int32_t)(bits - 0x3f3504f3u) >> 23;
  bits -= (uint32_t)n << 23;
  float f;
  memcpy(&f, &bits, sizeof f);
  f -= 1.0f;
  float p = 0.067466408f;
  p = p * f - 0.11675652f;
  p = p * f + 0.118881623f;
  p = p * f - 0.124055889f;
  p = p * f + 0.142195524f;
  p = p * f - 0.166679959f;
  p = p * f + 0.200021187f;
  p = p * f - 0.250000096f;
  p = p * f + 0.333333126f;
  const float exponent = (float)n - (x < 1.17549435e-38f ? 23.0f : 0.0f);
  const float small = exponent * -2.12194440e-4f + f * f * (p * f - 0.5f);
  float y = (small + f) + exponent * 0.693359375f;
  y = x < INFINITY ? y : x; /* a NaN stays one */
  y = x == 0.0f ? -INFINITY : y;
  return x < 0.0f ? NAN : y;
}

/* ln(1 + x) for x > -1: the logarithm of the rounded sum, and what rounding took from it. Within 2 ulp. */
static inline float accel_log1p(float x) {
  const float sum = 1.0f + x;
  const float rest = x - (sum - 1.0f);
  const float y = accel_log(sum) + rest / sum;
  return x < INFINITY ? y : x; /* a NaN stays one */
}

/* tanh x: an odd minimax polynomial below 0.625, 1 - 2 / (e^2x + 1) above. Within 2 ulp. */
static inline float accel_tanh(float x) {
  const float s = x * x;
  float p = -0.00571704495f;
  p = p * s + 0.0206505872f;
  p = p * s - 0.0537434981f;
  p = p * s + 0.133314913f;
  p = p * s - 0.333332839f;
  const float near = p * s * x + x;
  const float far = 1.0f - 2.0f / (accel_exp(2.0f * fabsf(x)) + 1.0f);
  return fabsf(x) < 0.625f ? near : copysignf(far, x);
}

/* The normal distribution's cumulative function: e^(-x^2 / 2) times the tail's ratio to it, a minimax polynomial in
 * u = 1 / (1 + 0.35 |x|) (the form of Hastings 1955). Within 2.4e-7; the far tail keeps its leading digits. */
static inline float accel_normal(float x) {
  const float u = 1.0f / (1.0f + 0.35f * fabsf(x));
  float p = -0.0290947666f;
  p = p * u + 0.143718095f;
  p = p * u - 0.255179559f;
  p = p * u + 0.1585496f;
  p = p * u - 0.0226691459f;
  p = p * u + 0.1053163f;
  p = p * u + 0.1198829f;
  p = p * u + 0.139854732f;
  p = p * u + 0.139621829f;
  const float tail = p * u * accel_exp_finite(-0.5f * x * x); /* a NaN stays one in u */
  return x > 0.0f ? 1.0f - tail : tail;
}

#define ACCEL_FUNCTION static inline
#include "../functions.h"
#include "../steps.h"

/* The largest of x[0 .. n - 1]; NaNs do not count. */
static inline float accel_max(const float *x, size_t n) {
  float lanes[32], highest = -INFINITY;
  for (size_t j = 0; j < 32; j++) lanes[j] = -INFINITY;
  for (size_t i = 0; i < n / 32; i++)
#pragma omp simd
    for (size_t j = 0; j < 32; j++) lanes[j] = x[i * 32 + j] > lanes[j] ? x[i * 32 + j] : lanes[j];
  for (size_t i = n / 32 * 32; i < n; i++) highest = x[i] > highest ? x[i] : highest;
  for (size_t half = 16; half > 0; half /= 2)
    for (size_t j = 0; j < half; j++) lanes[j] = lanes[j + half] > lanes[j] ? lanes[j + half] : lanes[j];
  return lanes[0] > highest ? lanes[0] : highest;
}

/* The sum of lanes[16], the upper half added to the lower one and so on; they change. */
static inline float accel_sum_lanes(float *lanes) {
  for (size_t half = 8; half > 0; half /= 2)
#pragma omp simd
    for (size_t j = 0; j < half; j++) lanes[j] += lanes[j + half];
  return lanes[0];
}

/* Exchanges so many numbers. */
ACCEL_FUNCTION void accel_swap(float *restrict one, float *restrict other, size_t count) {
#pragma omp simd
  for (size_t i = 0; i < count; i++) {
    const float value = one[i];
    one[i] = other[i];
    other[i] = value;
  }
}

#endif
