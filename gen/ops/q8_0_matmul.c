/* y = x W^T, x [..., in], as GGML multiplies: by a matrix W [out][in] in GGUF's blocks of Q8_0 or Q4_0 (`form`), and by
 * x in those of Q8_0 (include/accel/q8_0_gemm.h). y has the type of x. It is what a model is evaluated by
 * (gguf_matmul), and has no gradient. */
#include <math.h>

#include "gen/ops/support/quantized.h"
#include "gen/ops/support/support.h"

enum { X, CODES };
enum { Y, ROW_CODES, ROW_SCALES }; /* all but y are workspace */
enum { BLOCK = 32, HALF_BYTES = 2, MOST = 127 };

static struct quantized_form form_of(const struct node *node) {
  return (struct quantized_form){.codes = (enum quantized_codes)node_int(node, "form")};
}

static int infer(struct arena *arena, const struct node *node, struct shape *shapes, enum dtype *dtypes,
                 const char **error) {
  const int64_t out = node_int(node, "out"), in = node_int(node, "in");
  if (!op_check_float(arena, node, X, error) || !op_check_rank(arena, node, X, 2, error) ||
      !op_check_dtype(arena, node, CODES, DTYPE_UINT8, error) ||
      !op_check_shape(arena, node, CODES, quantized_codes(form_of(node), out, in), "the codes", error))
    return 0;
  const struct shape x = node->inputs[X]->shape;
  if (op_columns(x) != in)
    return op_fail(arena, node, error, "%s must have %lld columns", op_operand_text(arena, node, X), (long long)in);
  op_result(shapes, dtypes, op_with_extent(x, x.rank - 1, out), node->inputs[X]->dtype);
  shapes[ROW_CODES] = x;
  dtypes[ROW_CODES] = DTYPE_INT8;
  shapes[ROW_SCALES] = shape_of(2, op_rows(x), in / BLOCK);
  dtypes[ROW_SCALES] = DTYPE_FLOAT32;
  return 3;
}

/* ---- The float64 reference ---- */

/* The elements of a block of x that its codes stand for. */
static void rounded(const double *x, double *to) {
  double most = 0;
  for (int i = 0; i < BLOCK; i++) most = fmax(most, fabs(x[i]));
  const float step = (float)most / MOST, inverse = isfinite(1 / step) ? 1 / step : 0;
  for (int i = 0; i < BLOCK; i++) to[i] = roundf((float)x[i] * inverse) * op_float16(step);
}

static double code_at(enum quantized_codes codes, const double *block, int i) {
  const double *bytes = block + HALF_BYTES;
  if (codes == CODES_Q8_0) return (int8_t)bytes[i];
  return (i < BLOCK / 2 ? (int)bytes[i] & 15 : (int)bytes[i - BLOCK / 2] >> 4) - 8;
}

static void reference(const struct node *node, const double *const *inputs, double *const *outputs) {
  const int64_t rows = op_rows(node->inputs[X]->shape), out = node_int(node, "out"), in = node_int(node, "in");
  const enum quantized_codes codes = form_of(node).codes;
  const int64_t blocks = in / BLOCK, bytes = node->inputs[CODES]->shape.dim[2];
  for (int64_t i = 0; i < rows * out; i++) outputs[Y][i] = 0;
  for (int64_t r = 0; r < rows; r++)
    for (int64_t b = 0; b < blocks; b++) {
      double x[BLOCK];
      rounded(inputs[X] + r * in + b * BLOCK, x);
      for (int64_t o = 0; o < out; o++) {
        const double *block = inputs[CODES] + (o * blocks + b) * bytes;
        for (int i = 0; i < BLOCK; i++)
          outputs[Y][r * out + o] += x[i] * code_at(codes, block, i) * op_float16_at(block);
      }
    }
}

static double flops(const struct node *node) {
  return 2 * (double)op_rows(node->inputs[X]->shape) * (double)node_int(node, "out") * (double)node_int(node, "in");
}

static const struct op_kind kind = {
    .name = "q8_0_matmul",
    .class = OP_KERNEL,
    .input_names = {"x", "codes"},
    .output_names = {"y", "row_codes", "row_scales"},
    .infer = infer,
    .sequence.along = op_along_rows,
    .memory.workspace = 1 << ROW_CODES | 1 << ROW_SCALES,
    .cost.flops = flops,
    .cost.matmul_flops = flops,
    .reference.evaluate = reference,
};

const struct op_file op_file_q8_0_matmul = {
    .name = "q8_0_matmul",
    .kinds = (const struct op_kind *const[]){&kind, NULL},
};
