/* One row of x by a matrix of codes of even steps (runtime/base/linear_codes.h), y = x W^T, all in float32: each code
 * is read into a register, and nowhere else, four rows of W at a time. */
#ifndef RUNTIME_ONEDNN_LINEAR_ROW_H
#define RUNTIME_ONEDNN_LINEAR_ROW_H

#include "include/accel/quantized_gemm.h"
#include "runtime/base/linear_codes.h"

/* The most elements of a row. */
enum { RT_MOST_LINEAR = 32768 };

/* One row of y (+)= x W^T, by all threads, of rows of RT_MOST_LINEAR elements at most. A number of y is the sum of 16
 * parts, each of every 16th element: of each 32 elements, products of x and codes of two elements are added, multiplied
 * by the scale, and added to a part. Then the sum of each 32 elements of x times their offset is added to the parts in
 * turn. Parts 8 places from each other are added first, then those 4, 2 and 1 from each other. So the bits do not
 * depend on threads, nor on which rows are with it. */
void rt_multiply_linear_row(const struct accel_quantized_gemm *gemm, const struct rt_linear *matrix, float *y,
                            const float *x);

#endif
