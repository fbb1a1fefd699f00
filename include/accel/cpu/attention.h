/* What kernels of attention do that is no matmul. Scores are [key][query], of 32 queries; of a block of `count` keys
 * query i sees, where attention is causal, those up to diagonal + i. */
#ifndef ACCEL_CPU_ATTENTION_H
#define ACCEL_CPU_ATTENTION_H

#include <stdbool.h>

#include "functions.h"

/* Scores of keys after their query's own become -inf. */
static inline __attribute__((always_inline)) void accel_hide_later(float (*scores)[32], size_t count, size_t diagonal) {
  for (size_t j = diagonal; j < count; j++)
#pragma omp simd
    for (int i = 0; i < 32; i++) scores[j][i] = i < (int)(j - diagonal) ? -INFINITY : scores[j][i];
}

/* So do those of keys that are `window` or more before their query's own. */
static inline __attribute__((always_inline)) void accel_hide_earlier(float (*scores)[32], size_t count, size_t diagonal,
                                                                     size_t window) {
  for (size_t j = 0; j < count && j + window < diagonal + 32; j++)
    for (size_t i = j + window > diagonal ? j + window - diagonal : 0; i < 32; i++) scores[j][i] = -INFINITY;
}

/* And those of keys, of which the block's first is key `start`, before the first one that each of so many queries sees.
 */
static inline __attribute__((always_inline)) void accel_hide_before(float (*scores)[32], size_t count, size_t start,
                                                                    const int32_t *starts, size_t queries) {
  for (size_t j = 0; j < count; j++)
#pragma omp simd
    for (size_t i = 0; i < queries; i++) scores[j][i] = (int32_t)(start + j) >= starts[i] ? scores[j][i] : -INFINITY;
}

/* highest[i] = the highest score of query i so far. */
static inline __attribute__((always_inline)) void accel_raise_highest(float highest[static 32], float (*scores)[32],
                                                                      size_t count) {
  for (size_t j = 0; j < count; j++)
#pragma omp simd
    for (size_t i = 0; i < 32; i++) highest[i] = scores[j][i] > highest[i] ? scores[j][i] : highest[i];
}

/* y[columns] = attention of one query, times the scale, to keys `first` to `end` - 1; weights: space for `end` numbers.
 */
static inline __attribute__((always_inline)) void
accel_attend_one(size_t columns, size_t first, size_t end, const float *restrict query, const float *restrict keys,
                 const float *restrict values, float *restrict weights, float *restrict y) {
  float highest = -INFINITY, sum = 0.0f;
  for (size_t s = first; s < end; s++) {
    float dot = 0.0f;
#pragma omp simd reduction(+ : dot)
    for (size_t d = 0; d < columns; d++) dot += query[d] * keys[s * columns + d];
    weights[s] = dot;
    highest = dot > highest ? dot : highest;
  }
#pragma omp simd reduction(+ : sum)
  for (size_t s = first; s < end; s++) {
    weights[s] = accel_exp(weights[s] - highest);
    sum += weights[s];
  }
  for (size_t d = 0; d < columns; d++) y[d] = 0.0f;
  for (size_t s = first; s < end; s++)
#pragma omp simd
    for (size_t d = 0; d < columns; d++) y[d] += weights[s] * values[s * columns + d];
  for (size_t d = 0; d < columns; d++) y[d] /= sum;
}

#endif
