/* What kernels of attention do that is no matmul. Scores are [key][query], of 32 queries; of a block of `count` keys
 * query i sees, where attention is causal, those up to diagonal + i. */
#ifndef ACCEL_CPU_ATTENTION_H
#define ACCEL_CPU_ATTENTION_H

#include <stdalign.h>
#include <stdbool.h>
#include <string.h>

#include "functions.h"
#include "tiles.h"

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

/* Of so many keys and queries, of keys from `wide` on, which is a multiple of 16 or all, with queries from 16 on alone:
 * scores[key][query] += bias[query * row + key * step], but are not below -3e38: what such biases leave of a query's
 * keys is not NaN. */
static inline __attribute__((always_inline)) void accel_add_bias(float (*scores)[32], size_t count, size_t wide,
                                                                 size_t queries, const float *bias, size_t row,
                                                                 size_t step) {
  const size_t tiled = queries == 32 && step == 1 && row > 0 ? count / 16 * 16 : 0;
  for (size_t j = 0; j < tiled; j += 16)
    for (size_t i = j < wide ? 0 : 16; i < 32; i += 16) {
      alignas(64) float turned[16][16];
      accel_transpose(1.0f, bias + i * row + j, row, turned[0], 16);
      for (size_t r = 0; r < 16; r++)
#pragma omp simd
        for (size_t c = 0; c < 16; c++) {
          const float score = scores[j + r][i + c] + turned[r][c];
          scores[j + r][i + c] = score < -3e38f ? -3e38f : score;
        }
    }
  for (size_t j = tiled; j < count; j++)
    for (size_t i = j < wide ? 0 : 16; i < queries; i++) {
      const float score = scores[j][i] + bias[i * row + j * step];
      scores[j][i] = score < -3e38f ? -3e38f : score;
    }
}

/* Of the same: sums[query * row + key] += factor slopes[key][query]. */
static inline __attribute__((always_inline)) void accel_add_slopes(float (*slopes)[32], size_t count, size_t wide,
                                                                   size_t queries, float factor, float *sums,
                                                                   size_t row) {
  const size_t tiled = queries == 32 ? count / 16 * 16 : 0;
  for (size_t j = 0; j < tiled; j += 16)
    for (size_t i = j < wide ? 0 : 16; i < 32; i += 16) {
      alignas(64) float turned[16][16];
      accel_transpose(factor, &slopes[j][i], 32, turned[0], 16);
      for (size_t r = 0; r < 16; r++)
#pragma omp simd
        for (size_t c = 0; c < 16; c++) sums[(i + r) * row + j + c] += turned[r][c];
    }
  for (size_t j = tiled; j < count; j++)
    for (size_t i = j < wide ? 0 : 16; i < queries; i++) sums[i * row + j] += factor * slopes[j][i];
}

/* Numbers that are added up in parts: all zero; to[count] = the sums of so many parts, or those added to it. */
static inline void accel_clear_parts(size_t count, float *sums) {
#pragma omp parallel for
  for (size_t i = 0; i < count; i++) sums[i] = 0.0f;
}
static inline __attribute__((always_inline)) void accel_add_parts(size_t count, size_t parts, const float *sums,
                                                                  bool adds, float *to) {
#pragma omp parallel for
  for (size_t i = 0; i < count; i++) {
    float sum = 0.0f;
    for (size_t part = 0; part < parts; part++) sum += sums[part * count + i];
    to[i] = adds ? to[i] + sum : sum;
  }
}

/* highest[i] = the highest score of query i so far. */
static inline __attribute__((always_inline)) void accel_raise_highest(float highest[static 32], float (*scores)[32],
                                                                      size_t count) {
  for (size_t j = 0; j < count; j++)
#pragma omp simd
    for (size_t i = 0; i < 32; i++) highest[i] = scores[j][i] > highest[i] ? scores[j][i] : highest[i];
}

/* The same, where other blocks went before this one: what they gave, sum[i] and o[i][columns], is scaled to the highest
 * score of now. */
static inline __attribute__((always_inline)) void accel_scale_to_highest(float highest[static 32], float sum[static 32],
                                                                         size_t columns, float *o, float (*scores)[32],
                                                                         size_t count) {
  float before[32];
  memcpy(before, highest, sizeof before);
  accel_raise_highest(highest, scores, count);
  for (size_t i = 0; i < 32; i++) {
    const float factor = accel_exp(before[i] - highest[i]);
    sum[i] *= factor;
    for (size_t d = 0; d < columns; d++) o[i * columns + d] *= factor;
  }
}

/* Queries before their first block: no score is below `lowest`. */
static inline __attribute__((always_inline)) void accel_begin_queries(float highest[static 32], float sum[static 32],
                                                                      float lowest) {
  for (size_t i = 0; i < 32; i++) {
    highest[i] = lowest;
    sum[i] = 0.0f;
  }
}

/* So many of them after their last one: sum = 1 / sum, and lse[query] = the logarithm of the sum of e^scores. Where
 * `rest` is not NULL, it is in two parts: the highest score, and in rest[query] the logarithm of the sum of e^(score -
 * highest). */
static inline __attribute__((always_inline)) void accel_end_queries(size_t queries, const float highest[static 32],
                                                                    float sum[static 32], float *lse, float *rest) {
  float logarithms[32], whole[32];
#pragma omp simd
  for (size_t i = 0; i < 32; i++) {
    logarithms[i] = accel_log(sum[i]);
    whole[i] = highest[i] + logarithms[i];
    sum[i] = 1.0f / sum[i];
  }
  memcpy(lse, rest == NULL ? whole : highest, queries * sizeof *lse);
  if (rest != NULL) memcpy(rest, logarithms, queries * sizeof *rest);
}

/* y[columns] = attention of one query, times the scale, to keys `first` to `end` - 1, whose scores are within (-cap,
 * cap); 0: they are not capped; weights: space for `end` numbers.
 */
static inline __attribute__((always_inline)) void
accel_attend_one(size_t columns, size_t first, size_t end, const float *restrict query, const float *restrict keys,
                 const float *restrict values, float *restrict weights, float *restrict y, float cap) {
  float highest = -INFINITY, sum = 0.0f;
  for (size_t s = first; s < end; s++) {
    float dot = 0.0f;
#pragma omp simd reduction(+ : dot)
    for (size_t d = 0; d < columns; d++) dot += query[d] * keys[s * columns + d];
    weights[s] = cap > 0.0f ? cap * accel_tanh(dot / cap) : dot;
    highest = weights[s] > highest ? weights[s] : highest;
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
