/* One row of x by a matrix of codes, y = x W^T: each code is read into a register, and nowhere else. Four rows of W are
 * multiplied at a time, so that what is read of x serves all of them, and what sums one of them has to wait for is done
 * by the others. */
#ifndef RUNTIME_ONEDNN_QUANTIZED_ROW_H
#define RUNTIME_ONEDNN_QUANTIZED_ROW_H

#include "include/accel/quantized_gemm.h"
#include "runtime/base/levels.h"

/* Rows of W at a time, and the most elements that one has. */
enum { RT_ROWS_AT_ONCE = 4, RT_MOST_IN_ROW = 32768 };

/* Rows of W, of whole blocks: those of their codes and of their scales. A row that is not wanted is another once more.
 */
struct rt_code_rows {
  const uint8_t *codes[RT_ROWS_AT_ONCE];
  const float *scales[RT_ROWS_AT_ONCE];
  int64_t blocks;       /* of a row */
  const uint8_t *ahead; /* of codes that are read next; NULL: none */
};

/* How a processor multiplies by rows of codes. x is in groups of `group` elements: first those of even places, whose
 * codes are in the upper halves of bytes. dots() writes the sums of products of x with each row, whose elements are
 * rounded to `type`. A sum has as many parts as registers have lanes, each of every so manieth element in the order of
 * x; the parts of even and of odd places are added first, then the upper half of the lanes to the lower one, and so on.
 * So it does not depend on which rows are with it. */
struct rt_row_form {
  int64_t group;
  void (*dots)(enum accel_element type, const float *x, const struct rt_code_rows *rows, const float *levels,
               float *sums);
};

/* The form of this processor. */
const struct rt_row_form *rt_row_form(void);

/* One row of y (+)= x W^T, by all threads. gemm->in is whole blocks, RT_MOST_IN_ROW at most; levels: of codes. */
void rt_multiply_quantized_row(const struct accel_quantized_gemm *gemm, const float *levels, void *y, const void *x,
                               const uint8_t *codes, const struct rt_scales *scales);

#endif
