/* Functions of numbers that kernels call. For C++ that nvcc or hipcc compiles. */
#ifndef ACCEL_GPU_FUNCTIONS_H
#define ACCEL_GPU_FUNCTIONS_H

#include <math.h>

#include <accel/gpu/launch.h>

/* e^x where that is finite. */
__device__ inline float accel_exp_finite(float x) {
  return expf(x);
}

/* e^x. */
__device__ inline float accel_exp(float x) {
  return expf(x);
}

/* ln x. */
__device__ inline float accel_log(float x) {
  return logf(x);
}

/* ln(1 + x). */
__device__ inline float accel_log1p(float x) {
  return log1pf(x);
}

/* tanh x. */
__device__ inline float accel_tanh(float x) {
  return tanhf(x);
}

/* The normal distribution's cumulative function. */
__device__ inline float accel_normal(float x) {
  return 0.5f * erfcf(-0.707106781f * x);
}

#define ACCEL_FUNCTION __device__ inline
#include "../functions.h"
#include "../steps.h"

/* One type or another. */
template <bool first, typename one, typename other> struct accel_either {
  typedef one type;
};
template <typename one, typename other> struct accel_either<false, one, other> {
  typedef other type;
};

/* x as a float, of whatever type it is. */
template <typename type> __device__ inline float accel_float(type x) {
  if constexpr (sizeof(type) == sizeof(float))
    return x;
  else
    return accel_widen(x);
}

/* *to = x, rounded to its type. */
template <typename type, typename number> __device__ inline void accel_put(type *to, number x) {
  if constexpr (sizeof(type) == sizeof(number))
    *to = x;
  else
    *to = accel_narrow(x);
}

/* Stores x as an element of whatever type that is, or adds it to the element. */
template <bool add, typename type> __device__ inline void accel_write(type *to, float x) {
  accel_put(to, add ? accel_float(*to) + x : x);
}

/* Takes numbers up into what ln sum e^x is made from: the highest so far, and the sum of e^(x - highest). Of -inf there
 * is nothing to take; a NaN makes the sum one. */
template <int count> __device__ inline void accel_log_sum_add(float *highest, float *sum, const float *x) {
  float top = *highest;
#pragma unroll
  for (int e = 0; e < count; e++) top = fmaxf(top, x[e]);
  if (top > *highest) {
    *sum *= expf(*highest - top);
    *highest = top;
  }
  const float from = top > -INFINITY ? top : 0.0f;
#pragma unroll
  for (int e = 0; e < count; e++) *sum += expf(x[e] - from);
}

/* The blocks of 256 threads for so many elements, each of which continues until all is done. */
static inline unsigned accel_blocks_of(size_t count) {
  return count < 256 * 1056 ? (unsigned)((count + 255) / 256) : 1056;
}

#endif
