/* Codes of weights whose levels are even steps: by groups of a row, as torchao's Int8WeightOnlyConfig and
 * Int4WeightOnlyConfig have them, and in GGUF's blocks (its gguf-py, quants.py). RT_STEPS elements of a row share a
 * scale and an offset, of which an element is scale · code + offset:
 *
 *   Q8_0         34 bytes: d in float16; 32 codes of int8                  d code
 *   Q4_0         18 bytes: d in float16; 16 bytes of codes, those of       d (code - 8)
 *                elements 0 to 15 in lower halves
 *   Q4_K         144 bytes of 256 elements: d and m in float16; 12 bytes   (d a) code - m b
 *                of a and b, 6 bits each, for 8 times 32 elements; 128
 *                bytes of codes, of which each 32 have elements i of two
 *                such 32, the first in lower halves
 *   INT8_GROUPS  32 codes of int8; a float for each group                  scale code
 *   INT4_GROUPS  16 bytes of codes as in Q4_0; two floats for each group   scale (code - 8) + zero
 *
 * A group is a multiple of RT_STEPS elements of a row. */
#ifndef RUNTIME_BASE_LINEAR_CODES_H
#define RUNTIME_BASE_LINEAR_CODES_H

#include "include/accel/dtype.h"

#include <stdbool.h>
#include <stdint.h>

enum { RT_STEPS = 32 };

/* A matrix of such codes, of rows of `in` elements. */
struct rt_linear {
  enum accel_codes as;
  int64_t in, group; /* group: of those that have groups, the elements of one */
  const uint8_t *codes;
  const float *scales; /* of groups; NULL: they are among the codes */
};

/* Whether codes are of this kind. */
bool rt_is_linear(enum accel_codes as);

/* Whether elements have an offset other than 0. */
bool rt_linear_has_offsets(enum accel_codes as);

/* Bytes of the codes of a row. */
int64_t rt_linear_row_bytes(enum accel_codes as, int64_t in);

/* Floats of the scales of a row, of groups of `group`. */
int64_t rt_linear_row_scales(enum accel_codes as, int64_t in, int64_t group);

/* The first byte of the codes of 32 elements of a row whose codes begin at `row`. */
const uint8_t *rt_linear_codes_of(enum accel_codes as, const uint8_t *row, int64_t block);

/* The scales of a row, one for each RT_STEPS elements, and its offsets where there are any. */
void rt_linear_scales(const struct rt_linear *matrix, int64_t row, float *scales, float *offsets);

/* Elements [first, first + count) of a row, rounded to float32 as the formulas above say. */
void rt_linear_widen(const struct rt_linear *matrix, int64_t row, int64_t first, int64_t count, float *to);

/* Makes codes, and scales of groups, of a row of `in` floats. Codes of groups are to the bit those of torchao, Q8_0 and
 * Q4_0 those of gguf-py. Of Q4_K the 32 elements and 0 span 15 steps, and steps and offsets 63 of those of the 256;
 * each code is that of the nearest level then. */
void rt_linear_quantize(enum accel_codes as, int64_t in, int64_t group, const float *x, uint8_t *codes, float *scales);

/* 32 floats in the 34 bytes of Q8_0. Returns whether float16 holds the scale. */
bool rt_q8_0_encode(const float *x, uint8_t *bytes);

#endif
