/* The elements of a tensor of GGUF: from the weights' rows to the file's. */
#include <math.h>
#include <string.h>

#include "gen/commands/export/gguf_tensors.h"
#include "runtime/base/half.h"
#include "runtime/base/linear_codes.h"

/* ---- Reading ---- */

/* The row of its sources, all of the same number of rows, that a row of the tensor is. */
static int64_t source_row(const struct gguf_tensor *tensor, int64_t row) {
  const int64_t a = tensor->a, b = tensor->b, rest = a > 0 && b > 0 ? tensor->rows / (a * b) : 1;
  switch (tensor->change) {
  case CHANGE_SWAP: /* [a][b][rest] as [b][a][rest] */
    return (row / rest % a * b + row / rest / a) * rest + row % rest;
  case CHANGE_SWAP_EACH: /* [a][b][rest] as [a][rest][b] */
    return row / (b * rest) * b * rest + row % b * rest + row / b % rest;
  case CHANGE_PART: { /* the ath of b parts of each matrix */
    const int64_t matrix = tensor->rank > 2 ? tensor->rows / tensor->shape[0] : tensor->rows;
    return row / matrix * matrix * b + a * matrix + row % matrix;
  }
  case CHANGE_HEADS:
    return row / tensor->c * (tensor->sources[0]->shape[0] / a) + b + row % tensor->c;
  default:
    return row;
  }
}

/* A column of `count` elements of a matrix, from an element on. */
static void read_column(const struct stored_tensor *source, int64_t first, int64_t count, float *values) {
  for (int64_t i = 0; i < count; i++) exported_elements(source, first + i * source->shape[1], 1, &values[i]);
}

/* Where the column of a head begins that a row is. */
static int64_t head_column(const struct gguf_tensor *tensor, const struct stored_tensor *source, int64_t row) {
  const int64_t each = source->shape[0] / tensor->a, width = source->shape[1];
  return (row / width * each + tensor->b) * width + row % width;
}

void gguf_read_row(const struct gguf_tensor *tensor, int64_t row, float *values) {
  const int64_t each = tensor->rows / tensor->n_sources, at = source_row(tensor, row % each);
  const struct stored_tensor *source = tensor->sources[row / each];
  if (tensor->change == CHANGE_TRANSPOSE)
    read_column(source, row, tensor->width, values);
  else if (tensor->change == CHANGE_HEADS_TRANSPOSED)
    read_column(source, head_column(tensor, source, row), tensor->width, values);
  else
    exported_elements(source, at * tensor->width, tensor->width, values);
  for (int64_t i = 0; i < tensor->width && tensor->change == CHANGE_PLUS; i++) values[i] += (float)tensor->a;
  for (int64_t i = 0; i < tensor->width && tensor->change == CHANGE_MINUS_EXP; i++) values[i] = -expf(values[i]);
}

/* ---- Writing ---- */

enum { BLOCK = 32, BLOCK_BYTES = 34 };

uint64_t gguf_row_bytes(const struct gguf_tensor *tensor) {
  const uint64_t width = (uint64_t)tensor->width;
  return tensor->type == GGUF_Q8_0 ? width / BLOCK * BLOCK_BYTES : width * (tensor->type == GGUF_F16 ? 2 : 4);
}

uint64_t gguf_tensor_bytes(const struct gguf_tensor *tensor) {
  return (uint64_t)tensor->rows * gguf_row_bytes(tensor);
}

static bool encode_half(float value, uint8_t *bytes) {
  const uint16_t half = rt_narrow_float16(value);
  memcpy(bytes, &half, sizeof half);
  return (half & 0x7c00u) != 0x7c00u;
}

enum gguf_fit gguf_encode_row(const struct gguf_tensor *tensor, const float *values, uint8_t *bytes) {
  bool fits = true;
  if (tensor->type == GGUF_F32) {
    memcpy(bytes, values, (size_t)tensor->width * sizeof *values);
    return GGUF_FITS;
  }
  for (int64_t i = 0; i < tensor->width; i++)
    if (!isfinite(values[i])) return GGUF_NOT_FINITE;
  if (tensor->type == GGUF_F16)
    for (int64_t i = 0; i < tensor->width; i++) fits &= encode_half(values[i], bytes + 2 * i);
  else
    for (int64_t i = 0; i < tensor->width / BLOCK; i++)
      fits &= rt_q8_0_encode(values + i * BLOCK, bytes + i * BLOCK_BYTES);
  return fits ? GGUF_FITS : GGUF_TOO_LARGE;
}
