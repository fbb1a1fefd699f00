/* Norms of gradients. */
#ifndef ACCEL_CPU_NORMS_H
#define ACCEL_CPU_NORMS_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { ACCEL_NORM_CHUNK = 16384 }; /* elements whose squares are added up by one thread */

/* The sum of the squares of scale * x[count], by chunks, so that it does not depend on the number of threads. sums:
 * space for one of each chunk. */
static inline double accel_sum_of_squares(const float *x, size_t count, float scale, double *sums) {
  const size_t chunks = (count + ACCEL_NORM_CHUNK - 1) / ACCEL_NORM_CHUNK;
#pragma omp parallel for if (chunks > 1)
  for (size_t chunk = 0; chunk < chunks; chunk++) {
    const float *of_chunk = x + chunk * ACCEL_NORM_CHUNK;
    const size_t n = chunk + 1 < chunks ? ACCEL_NORM_CHUNK : count - chunk * ACCEL_NORM_CHUNK;
    float sum = 0.0f;
#pragma omp simd reduction(+ : sum)
    for (size_t i = 0; i < n; i++) {
      const float scaled = of_chunk[i] * scale;
      sum += scaled * scaled;
    }
    sums[chunk] = sum;
  }
  double total = 0.0;
  for (size_t chunk = 0; chunk < chunks; chunk++) total += sums[chunk];
  return total;
}

/* The size of the largest of x[count], found among the bits of all, of which a NaN's are the largest. */
static inline float accel_largest_size(const float *x, size_t count) {
  uint32_t highest = 0;
#pragma omp parallel for simd reduction(max : highest)
  for (size_t i = 0; i < count; i++) {
    const float size = fabsf(x[i]);
    uint32_t bits;
    memcpy(&bits, &size, sizeof bits);
    highest = bits > highest ? bits : highest;
  }
  float largest;
  memcpy(&largest, &highest, sizeof largest);
  return largest;
}

#endif
