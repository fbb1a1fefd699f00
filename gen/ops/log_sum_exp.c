/* y[r] = ln of the sum of e^x[r], over the last dimension, which is then gone; dx[r][c] = dy[r] e^(x[r][c] - y[r]). */
#include <math.h>

#include "gen/onnx/onnx.h"
#include "gen/ops/support/support.h"
#include "gen/stablehlo/stablehlo.h"

static int infer(struct arena *arena, const struct node *node, struct shape *shapes, enum dtype *dtypes,
                 const char **error) {
  if (!op_check_float(arena, node, 0, error) || !op_check_rank(arena, node, 0, 1, error)) return 0;
  return op_result(shapes, dtypes, op_leading(node->inputs[0]->shape), DTYPE_FLOAT32);
}

static void reference(const struct node *node, const double *const *inputs, double *const *outputs) {
  int64_t columns = op_columns(node->inputs[0]->shape), rows = op_rows(node->inputs[0]->shape);
  for (int64_t r = 0; r < rows; r++) {
    const double *x = inputs[0] + r * columns;
    double highest = x[0], sum = 0;
    for (int64_t c = 1; c < columns; c++) highest = fmax(highest, x[c]);
    for (int64_t c = 0; c < columns; c++) sum += exp(x[c] - highest);
    outputs[0][r] = highest + log(sum);
  }
}

/* One for each row, along with the row's columns. */
static struct value *as_column(struct builder *builder, struct value *y, const struct value *x) {
  return op_reshape(builder, y, op_with_extent(x->shape, x->shape.rank - 1, 1));
}

static void gradient(struct builder *builder, const struct node *node, struct value *const *dy, struct value **dx) {
  struct value *x = node->inputs[0];
  struct value *shifted = op_sub(builder, x, as_column(builder, node->outputs[0], x));
  struct value *softmax = builder_unary(builder, "exp", shifted);
  dx[0] = op_mul(builder, softmax, as_column(builder, dy[0], x));
}

static void write_onnx(struct onnx *onnx) {
  const struct onnx_extent last = onnx_fixed(-1);
  const struct attribute keeps = attribute_int("keepdims", 0);
  const char *inputs[] = {onnx_input(onnx, 0), onnx_shape(onnx, &last, 1)};
  onnx_result(onnx, 0, onnx_op(onnx, "ReduceLogSumExp", inputs, 2, &keeps, 1));
}

static void lower(struct stablehlo *hlo) {
  hlo_result(hlo, 0, hlo_log_sum_exp(hlo, hlo_input(hlo, 0)));
}

static const struct op_kind kind = {
    .name = "log_sum_exp",
    .lower.write = lower,
    .onnx.write = write_onnx,
    .class = OP_KERNEL,
    .input_names = {"x"},
    .output_names = {"y"},
    .infer = infer,
    .sequence.along = op_along_rows,
    .gradient = gradient,
    .types.autocast = {AUTOCAST_FLOAT32, AUTOCAST_FLOAT32}, /* a logarithm of 8 bits is useless under an exponential */
    .cost.flops_each = 4,                                   /* maximum, difference, exponential, sum */
    .reference.evaluate = reference,
};

/* x - log_sum_exp(x) */
static struct value *build_log_softmax(struct builder *builder, const struct argument *arguments, int count) {
  (void)count;
  struct value *x = op_tensor(arguments, 0), *y = builder_unary(builder, "log_sum_exp", x);
  return y == NULL ? NULL : op_sub(builder, x, as_column(builder, y, x));
}

const struct op_file op_file_log_sum_exp = {
    .name = "log_sum_exp",
    .kinds = (const struct op_kind *const[]){&kind, NULL},
    .functions =
        (const struct op_function[]){{"log_sum_exp", .kind = &kind}, {"log_softmax", .build = build_log_softmax}, {0}},
};
