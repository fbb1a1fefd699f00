/* Products of matrices in int8, as LLM.int8() multiplies (Dettmers, Lewis, Belkada, Zettlemoyer, arXiv:2208.07339), in
 * the form of bitsandbytes' Linear8bitLt where it is evaluated. A matrix W [out][in] has codes of int8 and a scale for
 * each row, its largest magnitude: element i of row o = code i scale o / 127. x [rows][in] gets the same form for each
 * product: it is rounded to float16 and its rows are quantized by their largest magnitude. A column of x in which some
 * number has at least the size `threshold` is an outlier: it is multiplied as it is, by elements of W in the type of x.
 *
 *   y = (codes of x) (codes of W)^T scale of x scale of W / 127^2 + (outliers of x) (their columns of W)^T
 *
 * Codes are multiplied in int32 without an error, whatever the processor has. An emitted program states the shape of
 * each product once, opens all of them at its start, and multiplies without allocating (but for what oneDNN's own calls
 * take). */
#ifndef ACCEL_INT8_GEMM_H
#define ACCEL_INT8_GEMM_H

#include "gemm.h"

#include <stdbool.h>
#include <stdint.h>

/* y[rows][out] = x[rows][in] W^T. */
struct accel_int8_gemm {
  enum accel_element type; /* of x and y */
  int64_t rows, out, in;
  float threshold; /* 0: no column is an outlier */
  bool native;     /* the runtime's own: whether oneDNN multiplies int8 exactly */
};

/* Makes one ready, by what the processor has. Returns true: where it has no instructions that multiply int8 exactly,
 * the codes are multiplied as floats, with the same result. */
bool accel_open_int8_gemm(struct accel_int8_gemm *gemm);

/* The product. Workspace: row_codes[rows][in] and row_scales[rows] for the form of x, outliers[1 + in] for how many
 * columns are outliers and which. Rows of x from valid[0] on make no column an outlier; NULL: all may. What oneDNN says
 * is in accel_onednn_status. */
void accel_multiply_int8(const struct accel_int8_gemm *gemm, void *y, int8_t *row_codes, float *row_scales,
                         int32_t *outliers, const void *x, const int8_t *codes, const float *scales,
                         const int32_t *valid);

#endif
