/* Norms of gradients. */
#ifndef ACCEL_CPU_NORMS_H
#define ACCEL_CPU_NORMS_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum {
  ACCEL_NORM_CHUNK = 16384, /* elements whose squares are added up by one thread */
  ACCEL_NORM_PIECE = 512    /* and, of these, in float32: so few that the sum lacks no digit, however it is compiled */
};

/* The sum of the squares of scale * x[count]. */
static inline double accel_squares_of_chunk(const float *x, size_t count, float scale) {
  double sum = 0.0;
  for (size_t first = 0; first < count; first += ACCEL_NORM_PIECE) {
    const size_t end = count - first < ACCEL_NORM_PIECE ? count : first + ACCEL_NORM_PIECE;
    float piece = 0.0f;
#pragma omp simd reduction(+ : piece)
    for (size_t i = first; i < end; i++) {
      const float scaled = x[i] * scale;
      piece += scaled * scaled;
    }
    sum += piece;
  }
  return sum;
}

/* The sum of the sizes of scale * x[count]. */
static inline double accel_sizes_of_chunk(const float *x, size_t count, float scale) {
  double sum = 0.0;
  for (size_t first = 0; first < count; first += ACCEL_NORM_PIECE) {
    const size_t end = count - first < ACCEL_NORM_PIECE ? count : first + ACCEL_NORM_PIECE;
    float piece = 0.0f;
#pragma omp simd reduction(+ : piece)
    for (size_t i = first; i < end; i++) piece += fabsf(x[i] * scale);
    sum += piece;
  }
  return sum;
}

/* The sum of the squares of scale * x[count], by chunks, so that it does not depend on the number of threads. sums:
 * space for one of each chunk. */
static inline double accel_sum_of_squares(const float *x, size_t count, float scale, double *sums) {
  const size_t chunks = (count + ACCEL_NORM_CHUNK - 1) / ACCEL_NORM_CHUNK;
#pragma omp parallel for if (chunks > 1)
  for (size_t chunk = 0; chunk < chunks; chunk++) {
    const size_t n = chunk + 1 < chunks ? ACCEL_NORM_CHUNK : count - chunk * ACCEL_NORM_CHUNK;
    sums[chunk] = accel_squares_of_chunk(x + chunk * ACCEL_NORM_CHUNK, n, scale);
  }
  double total = 0.0;
  for (size_t chunk = 0; chunk < chunks; chunk++) total += sums[chunk];
  return total;
}

/* The sum of the sizes of scale * x[count], in the same way. */
static inline double accel_sum_of_sizes(const float *x, size_t count, float scale, double *sums) {
  const size_t chunks = (count + ACCEL_NORM_CHUNK - 1) / ACCEL_NORM_CHUNK;
#pragma omp parallel for if (chunks > 1)
  for (size_t chunk = 0; chunk < chunks; chunk++) {
    const size_t n = chunk + 1 < chunks ? ACCEL_NORM_CHUNK : count - chunk * ACCEL_NORM_CHUNK;
    sums[chunk] = accel_sizes_of_chunk(x + chunk * ACCEL_NORM_CHUNK, n, scale);
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
