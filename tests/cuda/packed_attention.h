/* Attention over the result of a matmul that holds queries, keys and values side by side, as a model's has it. */
#ifndef ACCEL_TESTS_PACKED_ATTENTION_H
#define ACCEL_TESTS_PACKED_ATTENTION_H

#include "include/accel/gpu/attention.h"

/* q, k, v and their gradients [batch][length][heads + 2 groups][size], y and its gradient [batch][length][heads][size];
 * neither causal nor with lengths. The caller names and scales it. */
static inline struct accel_gpu_attention packed_attention(enum accel_element type, int64_t batch, int64_t heads,
                                                          int64_t groups, int64_t length, int64_t size) {
  const int64_t row = (heads + 2 * groups) * size, wide = heads * size;
  const struct accel_steps packed = {length * row, size, row}, separate = {length * wide, size, wide};
  return (struct accel_gpu_attention){.type = type,
                                      .batch = batch,
                                      .heads = heads,
                                      .groups = groups,
                                      .queries = length,
                                      .keys = length,
                                      .head_size = size,
                                      .q = packed,
                                      .k = packed,
                                      .v = packed,
                                      .y = separate,
                                      .d_q = packed,
                                      .d_k = packed,
                                      .d_v = packed,
                                      .d_y = separate};
}

#endif
