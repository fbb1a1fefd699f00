/* Lines of elements of 16 bits and of float32, from one to the other. Steps from line to line are in elements. */
#ifndef RUNTIME_ONEDNN_LINES_H
#define RUNTIME_ONEDNN_LINES_H

#include "include/accel/gemm.h"

/* The lesser of two counts: what is left of a line for a tile. */
static inline int64_t rt_least(int64_t a, int64_t b) {
  return a < b ? a : b;
}

/* to[lines][length] = the elements of `from`, whose type is one of 16 bits. */
void rt_widen_lines(enum accel_element type, float *to, int64_t to_line, const uint16_t *from, int64_t line,
                    int64_t lines, int64_t length);

/* to[lines][length], of any type, = or += the elements of `from`. */
void rt_store_lines(enum accel_element type, bool accumulate, void *to, int64_t line, const float *from,
                    int64_t from_line, int64_t lines, int64_t length);

#endif
