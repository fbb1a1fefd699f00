/* y[r][c] = e^x[r][c] / the sum of e^x[r], over the last dimension; dx = y (dy - the sum of dy y over the row). */
#include <math.h>

#include "gen/onnx/onnx.h"
#include "gen/ops/support/support.h"
#include "gen/stablehlo/stablehlo.h"

static int infer(struct arena *arena, const struct node *node, struct shape *shapes, enum dtype *dtypes,
                 const char **error) {
  if (!op_check_float(arena, node, 0, error) || !op_check_rank(arena, node, 0, 1, error)) return 0;
  return op_result(shapes, dtypes, node->inputs[0]->shape, node->inputs[0]->dtype);
}

static void softmax_row(const double *x, double *y, int64_t columns) {
  double highest = x[0], sum = 0;
  for (int64_t c = 1; c < columns; c++) highest = fmax(highest, x[c]);
  for (int64_t c = 0; c < columns; c++) sum += y[c] = exp(x[c] - highest);
  for (int64_t c = 0; c < columns; c++) y[c] /= sum;
}

static void reference(const struct node *node, const double *const *inputs, double *const *outputs) {
  int64_t columns = op_columns(node->inputs[0]->shape), rows = op_rows(node->inputs[0]->shape);
  for (int64_t r = 0; r < rows; r++) softmax_row(inputs[0] + r * columns, outputs[0] + r * columns, columns);
}

static void gradient(struct builder *builder, const struct node *node, struct value *const *dy, struct value **dx) {
  dx[0] = builder_binary(builder, "softmax_backward", dy[0], node->outputs[0]);
}

static void write_onnx(struct onnx *onnx) {
  onnx_result(onnx, 0, onnx_with(onnx, "Softmax", onnx_input(onnx, 0), "axis", -1));
}

static void lower(struct stablehlo *hlo) {
  const struct hlo x = hlo_input(hlo, 0);
  const struct hlo parts = hlo_unary(hlo, "exponential", hlo_sub(hlo, x, hlo_reduce_rows(hlo, "maximum", x)));
  hlo_result(hlo, 0, hlo_div(hlo, parts, hlo_reduce_rows(hlo, "add", parts)));
}

static const struct op_kind kind = {
    .name = "softmax",
    .lower.write = lower,
    .onnx.write = write_onnx,
    .class = OP_KERNEL,
    .input_names = {"x"},
    .output_names = {"y"},
    .infer = infer,
    .sequence.along = op_along_rows,
    .gradient = gradient,
    .types.autocast = {AUTOCAST_AS_IS, AUTOCAST_FLOAT32},
    .cost.flops_each = 5, /* maximum, difference, exponential, sum, division */
    .reference.evaluate = reference,
};

/* ---- Backward ---- */

static int infer_backward(struct arena *arena, const struct node *node, struct shape *shapes, enum dtype *dtypes,
                          const char **error) {
  if (!op_check_shape(arena, node, 0, node->inputs[1]->shape, "like y", error)) return 0;
  return op_result(shapes, dtypes, node->inputs[0]->shape, node->inputs[0]->dtype);
}

static void reference_backward(const struct node *node, const double *const *inputs, double *const *outputs) {
  int64_t columns = op_columns(node->inputs[0]->shape), rows = op_rows(node->inputs[0]->shape);
  for (int64_t r = 0; r < rows; r++) {
    const double *dy = inputs[0] + r * columns, *y = inputs[1] + r * columns;
    double sum = 0;
    for (int64_t c = 0; c < columns; c++) sum += dy[c] * y[c];
    for (int64_t c = 0; c < columns; c++) outputs[0][r * columns + c] = y[c] * (dy[c] - sum);
  }
}

static void lower_backward(struct stablehlo *hlo) {
  const struct hlo dy = hlo_input(hlo, 0), y = hlo_input(hlo, 1);
  const struct hlo sum = hlo_reduce_rows(hlo, "add", hlo_mul(hlo, dy, y));
  hlo_result(hlo, 0, hlo_mul(hlo, y, hlo_sub(hlo, dy, sum)));
}

static const struct op_kind kind_backward = {
    .name = "softmax_backward",
    .lower.write = lower_backward,
    .class = OP_KERNEL,
    .template_name = "softmax",
    .input_names = {"dy", "y"},
    .output_names = {"dx"},
    .infer = infer_backward,
    .memory.accumulates = 1,
    .memory.in_place = {1},
    .types.autocast = {AUTOCAST_AS_IS, AUTOCAST_FLOAT32},
    .cost.flops_each = 4,
    .reference.evaluate = reference_backward,
};

const struct op_file op_file_softmax = {
    .name = "softmax",
    .kinds = (const struct op_kind *const[]){&kind, &kind_backward, NULL},
    .functions = (const struct op_function[]){{"softmax", .kind = &kind}, {0}},
};
