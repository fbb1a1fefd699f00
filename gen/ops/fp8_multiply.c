/* Products of codes of 8 bits by a device's library, with a scale for each factor (docs/cuda.md): what
 * gen/plan/graph/fp8.c makes of fp8_matmul where the device has such products.
 *
 * y = a b^T a_inverse b_inverse. Both factors have the depth as their last dimension: on compute capability 8.9 and 9.0
 * cuBLASLt takes no other layout. fp8_transpose copies codes into it. */
#include <math.h>

#include "gen/ops/support/support.h"

enum { A, B, A_INVERSE, B_INVERSE };

/* The number of a code. */
static double number_of(int code, bool e5m2) {
  const int bits = e5m2 ? 2 : 3, bias = e5m2 ? 15 : 7;
  const int size = code & 0x7f, exponent = size >> bits, mantissa = size & ((1 << bits) - 1);
  const double value =
      exponent > 0 ? ldexp(mantissa + (1 << bits), exponent - bias - bits) : ldexp(mantissa, 1 - bias - bits);
  const bool is_number = e5m2 ? exponent < 0x1f : size < 0x7f;
  return !is_number ? NAN : (code & 0x80) != 0 ? -value : value;
}

static int infer_multiply(struct arena *arena, const struct node *node, struct shape *shapes, enum dtype *dtypes,
                          const char **error) {
  const struct shape a = node->inputs[A]->shape, b = node->inputs[B]->shape;
  if (!op_check_dtype(arena, node, A, DTYPE_UINT8, error) || !op_check_dtype(arena, node, B, DTYPE_UINT8, error))
    return 0;
  if (b.rank != 2 || op_columns(a) != op_columns(b))
    return op_fail(arena, node, error, "%s has not the columns that b has", op_operand_text(arena, node, A));
  return op_result(shapes, dtypes, op_with_extent(a, a.rank - 1, b.dim[0]),
                   node_int(node, "bf16") != 0 ? DTYPE_BFLOAT16 : DTYPE_FLOAT32);
}

static void reference_multiply(const struct node *node, const double *const *inputs, double *const *outputs) {
  const int64_t depth = node->inputs[B]->shape.dim[1], columns = node->inputs[B]->shape.dim[0];
  const int64_t e5m2 = node_int(node, "e5m2");
  for (int64_t i = 0; i < shape_count(node->outputs[0]->shape); i++) {
    const double *a = inputs[A] + i / columns * depth, *b = inputs[B] + i % columns * depth;
    double sum = 0;
    for (int64_t k = 0; k < depth; k++) sum += number_of((int)a[k], e5m2 == 1) * number_of((int)b[k], e5m2 == 2);
    outputs[0][i] = sum * inputs[A_INVERSE][0] * inputs[B_INVERSE][0];
  }
}

static double flops(const struct node *node) {
  return 2 * (double)shape_count(node->outputs[0]->shape) * (double)node->inputs[B]->shape.dim[1];
}

static int gemms(const struct node *node, struct op_gemm *found) {
  const struct shape b = node->inputs[B]->shape;
  found[0] = (struct op_gemm){"product",   op_rows(node->inputs[A]->shape), b.dim[1], b.dim[0],
                              DTYPE_UINT8, node->outputs[0]->dtype};
  return 1;
}

static const struct op_kind multiply = {
    .name = "fp8_multiply",
    .class = OP_KERNEL,
    .template_name = "fp8_multiply",
    .input_names = {"a", "b", "a_inverse", "b_inverse"},
    .output_names = {"y"},
    .infer = infer_multiply,
    .cost.flops = flops,
    .cost.matmul_flops = flops,
    .library.gemms = gemms,
    .reference.evaluate = reference_multiply,
};

/* ---- Copies ---- */

static int infer_transpose(struct arena *arena, const struct node *node, struct shape *shapes, enum dtype *dtypes,
                           const char **error) {
  const struct shape x = node->inputs[0]->shape;
  if (!op_check_dtype(arena, node, 0, DTYPE_UINT8, error) || !op_check_rank(arena, node, 0, 2, error)) return 0;
  return op_result(shapes, dtypes, shape_of(2, x.dim[1], x.dim[0]), DTYPE_UINT8);
}

static void reference_transpose(const struct node *node, const double *const *inputs, double *const *outputs) {
  const int64_t rows = node->inputs[0]->shape.dim[0], columns = node->inputs[0]->shape.dim[1];
  for (int64_t i = 0; i < rows * columns; i++) outputs[0][i % columns * rows + i / columns] = inputs[0][i];
}

static const struct op_kind transpose = {
    .name = "fp8_transpose",
    .class = OP_KERNEL,
    .template_name = "fp8_multiply",
    .input_names = {"x"},
    .output_names = {"y"},
    .infer = infer_transpose,
    .reference.evaluate = reference_transpose,
};

struct value *op_fp8_multiply_with(struct builder *builder, struct value *const factors[4], enum op_fp8_pair pair,
                                   bool bf16) {
  const struct attribute attributes[] = {attribute_int("bf16", bf16), attribute_int("e5m2", pair)};
  return builder_op(builder, "fp8_multiply", factors, 4, attributes, 2);
}

struct value *op_fp8_transpose_of(struct builder *builder, struct value *x) {
  return builder_op(builder, "fp8_transpose", &x, 1, NULL, 0);
}

const struct op_file op_file_fp8_multiply = {
    .name = "fp8_multiply",
    .kinds = (const struct op_kind *const[]){&multiply, &transpose, NULL},
};
