/* The largest elements of windows of planes. Where windows fill registers along a line, lines are taken one by one,
 * else ACCEL_PLANES planes side by side, [position][plane]. Extents are constants where functions are inlined. */
#ifndef ACCEL_CPU_POOL_H
#define ACCEL_CPU_POOL_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define ACCEL_POOL static inline __attribute__((always_inline))

enum { ACCEL_PLANES = 16 };

/* The first position of window i on an axis: windows are `stride` apart, and the first begins `padding` before it. */
ACCEL_POOL size_t accel_window_begin(size_t i, size_t stride, size_t padding) {
  return i * stride > padding ? i * stride - padding : 0;
}

/* The position after its last one, of windows of `kernel` positions on an axis of `size`. */
ACCEL_POOL size_t accel_window_end(size_t i, size_t stride, size_t padding, size_t kernel, size_t size) {
  const size_t end = i * stride + (kernel - padding);
  return end < size ? end : size;
}

/* What is larger of each of from[size] and the same position of a line, which the first one begins: `padding`
 * positions below every number are on both sides of it there. A NaN is larger. */
ACCEL_POOL void accel_raise_line(size_t size, size_t padding, bool first, const float *restrict from,
                                 float *restrict line) {
  if (first) {
    for (size_t c = 0; c < padding; c++) line[c] = line[padding + size + c] = -INFINITY;
    memcpy(line + padding, from, size * sizeof *line);
    return;
  }
  for (size_t c = 0; c < size; c++) {
    const float at = from[c], highest = line[padding + c];
    line[padding + c] = at > highest || at != at ? at : highest;
  }
}

/* The largest of the line of each of `count` windows, or NaN. */
ACCEL_POOL void accel_largest_in_line(size_t count, size_t kernel, size_t stride, const float *restrict line,
                                      float *restrict largest) {
  for (size_t j = 0; j < count; j++) {
    float highest = line[j * stride];
    for (size_t c = 1; c < kernel; c++) {
      const float at = line[j * stride + c];
      highest = at > highest || at != at ? at : highest;
    }
    largest[j] = highest;
  }
}

/* Of each of `count` windows the largest element so far, the first of equal ones, and where it is in lines with their
 * padding: from row `row` of the plane on, of which the windows' first is `first`. line: space for one. */
ACCEL_POOL void accel_find_in_line(size_t size, size_t count, size_t kernel, size_t stride, size_t padding, bool first,
                                   const float *restrict from, size_t row, float *restrict line,
                                   float *restrict highest, uint32_t *restrict found) {
  const size_t width = size + 2 * padding;
  accel_raise_line(size, padding, true, from, line);
  if (first)
    for (size_t j = 0; j < count; j++) {
      const size_t left = accel_window_begin(j, stride, padding);
      found[j] = (uint32_t)(row * width + left + padding);
      highest[j] = from[left];
    }
  for (size_t c = 0; c < kernel; c++)
    for (size_t j = 0; j < count; j++) {
      const float at = line[j * stride + c];
      found[j] = at > highest[j] ? (uint32_t)(row * width + j * stride + c) : found[j];
      highest[j] = at > highest[j] ? at : highest[j];
    }
}

/* What the windows' slopes give to row `row`, with its padding. */
ACCEL_POOL void accel_slopes_in_line(size_t size, size_t count, size_t kernel, size_t stride, size_t padding,
                                     size_t row, const uint32_t *restrict found, const float *restrict slope,
                                     float *restrict line) {
  const size_t width = size + 2 * padding;
  for (size_t c = 0; c < width; c++) line[c] = 0.0f;
  for (size_t c = 0; c < kernel; c++)
    for (size_t j = 0; j < count; j++)
      line[j * stride + c] += found[j] == row * width + j * stride + c ? slope[j] : 0.0f;
}

/* largest = the largest elements of the planes in rows [top, bottom) and columns [left, right), or NaN; in: the planes'
 * elements, in rows of `width`. */
ACCEL_POOL void accel_largest_of_planes(size_t width, size_t top, size_t bottom, size_t left, size_t right,
                                        float (*in)[ACCEL_PLANES], float largest[ACCEL_PLANES]) {
  float highest[ACCEL_PLANES];
  for (size_t p = 0; p < ACCEL_PLANES; p++) highest[p] = -INFINITY;
  for (size_t row = top; row < bottom; row++)
    for (size_t column = left; column < right; column++)
#pragma omp simd
      for (size_t p = 0; p < ACCEL_PLANES; p++) {
        const float at = in[row * width + column][p];
        highest[p] = at > highest[p] || at != at ? at : highest[p];
      }
  memcpy(largest, highest, sizeof highest);
}

/* The slopes are added to `out` at the first of the largest elements there. */
ACCEL_POOL void accel_slope_of_planes(size_t width, size_t top, size_t bottom, size_t left, size_t right,
                                      float (*in)[ACCEL_PLANES], const float slope[ACCEL_PLANES],
                                      float (*out)[ACCEL_PLANES]) {
  float highest[ACCEL_PLANES];
  uint32_t found[ACCEL_PLANES]; /* where in the plane */
  memcpy(highest, in[top * width + left], sizeof highest);
  for (size_t p = 0; p < ACCEL_PLANES; p++) found[p] = (uint32_t)(top * width + left);
  for (size_t row = top; row < bottom; row++)
    for (size_t column = left; column < right; column++)
#pragma omp simd
      for (size_t p = 0; p < ACCEL_PLANES; p++) {
        const float at = in[row * width + column][p];
        found[p] = at > highest[p] ? (uint32_t)(row * width + column) : found[p];
        highest[p] = at > highest[p] ? at : highest[p];
      }
  for (size_t row = top; row < bottom; row++)
    for (size_t column = left; column < right; column++)
#pragma omp simd
      for (size_t p = 0; p < ACCEL_PLANES; p++)
        out[row * width + column][p] += found[p] == row * width + column ? slope[p] : 0.0f;
}

#endif
