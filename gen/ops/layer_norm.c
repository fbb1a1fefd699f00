/* Layer normalisation over the last dimension (Ba, Kiros, Hinton, arXiv:1607.06450, eq. 4).
 * y[r][c] = n[r][c] weight[c] + bias[c], n = (x - mean) rstd, rstd = 1 / sqrt(variance + eps).
 * With g = dy weight and averages over a row: dx = rstd (g - avg(g) - n avg(g n)), dweight = the sum over rows of dy n,
 * dbias = the sum over rows of dy. */
#include "gen/onnx/onnx.h"
#include "gen/ops/support/support.h"
#include "gen/stablehlo/stablehlo.h"

static const struct op_kind kind, kind_of_sum, kind_plus, kind_with_bits16;

static int infer(struct arena *arena, const struct node *node, struct shape *shapes, enum dtype *dtypes,
                 const char **error) {
  struct shape x = node->inputs[0]->shape;
  if (!op_check_rank(arena, node, 0, 1, error)) return 0;
  for (int i = 0; i < node->n_inputs; i++) {
    if (!op_check_float(arena, node, i, error)) return 0;
    if (i > 0 &&
        !op_check_shape(arena, node, i, shape_of(1, op_columns(x)),
                        arena_printf(arena, "one for each column of %s", op_operand_text(arena, node, 0)), error))
      return 0;
  }
  shapes[0] = x;
  shapes[1] = shapes[2] = shape_of(1, op_rows(x));
  dtypes[0] = node->inputs[0]->dtype;
  dtypes[1] = dtypes[2] = DTYPE_FLOAT32;
  return 3;
}

static void reference(const struct node *node, const double *const *inputs, double *const *outputs) {
  int64_t columns = op_columns(node->inputs[0]->shape), rows = op_rows(node->inputs[0]->shape);
  const double *weight = inputs[1], *bias = node->n_inputs > 2 ? inputs[2] : NULL;
  for (int64_t r = 0; r < rows; r++) {
    const double *x = inputs[0] + r * columns;
    struct op_moments row = op_moments(x, columns, node_real(node, "eps"));
    for (int64_t c = 0; c < columns; c++)
      outputs[0][r * columns + c] = (x[c] - row.mean) * row.rstd * weight[c] + (bias != NULL ? bias[c] : 0);
    outputs[1][r] = row.mean;
    outputs[2][r] = row.rstd;
  }
}

static void gradient(struct builder *builder, const struct node *node, struct value *const *dy, struct value **dx) {
  bool bias = node->n_inputs > 2;
  struct value *inputs[] = {dy[0], node->inputs[0], node->inputs[1], node->outputs[1], node->outputs[2]};
  struct attribute attribute = attribute_int("bias", bias);
  struct node *backward = builder_node(builder, "layer_norm_backward", inputs, 5, &attribute, 1);
  if (backward == NULL) return;
  for (int i = 0; i < node->n_inputs; i++) dx[i] = backward->outputs[i];
}

static void write_onnx(struct onnx *onnx) {
  const struct attribute attributes[] = {attribute_int("axis", -1), attribute_real("epsilon", onnx_real(onnx, "eps"))};
  const char *inputs[3];
  for (int i = 0; i < onnx_n_inputs(onnx); i++) inputs[i] = onnx_input(onnx, i);
  onnx_result(onnx, 0, onnx_op(onnx, "LayerNormalization", inputs, onnx_n_inputs(onnx), attributes, 2));
}

static void lower(struct stablehlo *hlo) {
  const struct node *node = hlo_node(hlo);
  const struct hlo x = hlo_input(hlo, 0), mean = hlo_row_mean(hlo, x), d = hlo_sub(hlo, x, mean);
  const struct hlo variance = hlo_row_mean(hlo, hlo_mul(hlo, d, d));
  const struct hlo rstd = hlo_unary(hlo, "rsqrt", hlo_add(hlo, variance, hlo_number(node_real(node, "eps"))));
  const struct hlo y = hlo_mul(hlo, hlo_mul(hlo, d, rstd), hlo_input(hlo, 1));
  hlo_result(hlo, 0, node->n_inputs > 2 ? hlo_add(hlo, y, hlo_input(hlo, 2)) : y);
  hlo_result(hlo, 1, mean);
  hlo_result(hlo, 2, rstd);
}

static const struct op_kind kind = {
    .name = "layer_norm",
    .lower.write = lower,
    .onnx.write = write_onnx,
    .class = OP_KERNEL,
    .template_name = "norm",
    .input_names = {"x", "weight", "bias"},
    .output_names = {"y", "mean", "rstd"},
    .infer = infer,
    .sequence.along = op_along_rows,
    .gradient = gradient,
    .types.autocast = {AUTOCAST_AS_IS, AUTOCAST_FLOAT32},
    .cost.flops_each = 7, /* two sums and a difference; then scale, weight and bias */
    .reference.evaluate = reference,
};

/* ---- Backward ---- */

static int infer_backward(struct arena *arena, const struct node *node, struct shape *shapes, enum dtype *dtypes,
                          const char **error) {
  return op_infer_norm_backward(arena, node, shapes, dtypes, node_int(node, "bias") ? 3 : 2, error);
}

/* One row: dx, and its part of dweight and dbias (NULL: none). */
static void row_backward(int64_t columns, const double *dy, const double *x, const double *weight, double mean,
                         double rstd, double *dx, double *dweight, double *dbias) {
  double sum = 0, product = 0;
  for (int64_t c = 0; c < columns; c++) {
    sum += dy[c] * weight[c];
    product += dy[c] * weight[c] * (x[c] - mean) * rstd;
  }
  for (int64_t c = 0; c < columns; c++) {
    double n = (x[c] - mean) * rstd;
    dx[c] = rstd * (dy[c] * weight[c] - sum / (double)columns - n * product / (double)columns);
    dweight[c] += dy[c] * n;
    if (dbias != NULL) dbias[c] += dy[c];
  }
}

static void reference_backward(const struct node *node, const double *const *inputs, double *const *outputs) {
  int64_t columns = op_columns(node->inputs[1]->shape), rows = op_rows(node->inputs[1]->shape);
  double *dbias = node->n_outputs > 2 ? outputs[2] : NULL;
  for (int64_t c = 0; c < columns; c++) outputs[1][c] = 0;
  for (int64_t c = 0; c < columns && dbias != NULL; c++) dbias[c] = 0;
  for (int64_t r = 0; r < rows; r++)
    row_backward(columns, inputs[0] + r * columns, inputs[1] + r * columns, inputs[2], inputs[3][r], inputs[4][r],
                 outputs[0] + r * columns, outputs[1], dbias);
}

static void lower_backward(struct stablehlo *hlo) {
  const struct hlo dy = hlo_input(hlo, 0), x = hlo_input(hlo, 1), g = hlo_mul(hlo, dy, hlo_input(hlo, 2));
  struct shape column = x.shape;
  column.dim[column.rank - 1] = 1;
  const struct hlo mean = hlo_reshape(hlo, hlo_input(hlo, 3), column);
  const struct hlo rstd = hlo_reshape(hlo, hlo_input(hlo, 4), column);
  const struct hlo n = hlo_mul(hlo, hlo_sub(hlo, x, mean), rstd);
  const struct hlo along = hlo_mul(hlo, n, hlo_row_mean(hlo, hlo_mul(hlo, g, n)));
  const struct hlo rest = hlo_sub(hlo, hlo_sub(hlo, g, hlo_row_mean(hlo, g)), along);
  hlo_result(hlo, 0, hlo_mul(hlo, rest, rstd));
  hlo_result(hlo, 1, hlo_column_sums(hlo, hlo_mul(hlo, dy, n)));
  if (hlo_node(hlo)->n_outputs > 2) hlo_result(hlo, 2, hlo_column_sums(hlo, dy));
}

static const struct op_kind kind_backward = {
    .name = "layer_norm_backward",
    .lower.write = lower_backward,
    .class = OP_KERNEL,
    .template_name = "norm",
    .input_names = {"dy", "x", "weight", "mean", "rstd"},
    .output_names = {"dx", "dweight", "dbias"},
    .infer = infer_backward,
    .memory.accumulates = 1 | 2 | 4,
    .memory.in_place = {1},
    .types.autocast = {AUTOCAST_AS_IS, AUTOCAST_FLOAT32},
    .cost.flops_each = 14,
    .reference.evaluate = reference_backward,
};

/* ---- With additions, which the plan makes of nodes that were differentiated before ---- */

static const struct op_kind kind_of_sum = {
    .name = "add_layer_norm",
    .class = OP_KERNEL,
    .template_name = "norm",
    .input_names = {"a", "b", "weight", "bias"},
    .output_names = {"y", "mean", "rstd", "x"},
    .memory.in_place = {0, 0, 0, 1},
    .cost.flops_each = 8,
    .fusion.plain = &kind,
    .reference.evaluate = op_reference_of_sum,
};

static const struct op_kind kind_plus = {
    .name = "layer_norm_plus_backward",
    .class = OP_KERNEL,
    .template_name = "norm",
    .input_names = {"dy", "x", "weight", "mean", "rstd", "other"},
    .output_names = {"dx", "dweight", "dbias"},
    .memory.accumulates = 2 | 4,
    .memory.in_place = {6},
    .cost.flops_each = 15,
    .fusion.plain = &kind_backward,
    .reference.evaluate = op_reference_plus,
};

static const struct op_kind kind_with_bits16 = {
    .name = "layer_norm_plus_bits16_backward",
    .class = OP_KERNEL,
    .template_name = "norm",
    .input_names = {"dy", "x", "weight", "mean", "rstd", "other"},
    .output_names = {"dx", "narrow", "dweight", "dbias"},
    .memory.accumulates = 4 | 8,
    .memory.in_place = {6},
    .cost.flops_each = 15,
    .fusion.plain = &kind_backward,
    .reference.evaluate = op_reference_with_bits16,
};

/* ---- Functions: the weight starts at one and the bias at zero, whatever the scope says ---- */

static struct value *layer_norm(struct builder *builder, const struct argument *arguments, double eps, bool bias) {
  struct value *x = op_tensor(arguments, 1);
  if (x == NULL) return NULL;
  struct shape shape = shape_of(1, op_columns(x->shape));
  struct value *inputs[3] = {x};
  inputs[1] = op_fixed_parameter(builder, arguments[0].scope, "weight", shape, INIT_ONES);
  if (bias) inputs[2] = op_fixed_parameter(builder, arguments[0].scope, "bias", shape, INIT_ZEROS);
  struct attribute attribute = attribute_real("eps", eps);
  return builder_op(builder, "layer_norm", inputs, bias ? 3 : 2, &attribute, 1);
}

static struct value *build(struct builder *builder, const struct argument *arguments, int count) {
  (void)count;
  return layer_norm(builder, arguments, 1e-5, true);
}

static struct value *build_no_bias(struct builder *builder, const struct argument *arguments, int count) {
  (void)count;
  return layer_norm(builder, arguments, 1e-5, false);
}

static struct value *build_eps(struct builder *builder, const struct argument *arguments, int count) {
  (void)count;
  return layer_norm(builder, arguments, arguments[2].real, true);
}

const struct op_file op_file_layer_norm = {
    .name = "layer_norm",
    .kinds = (const struct op_kind *const[]){&kind, &kind_backward, &kind_of_sum, &kind_plus, &kind_with_bits16, NULL},
    .functions = (const struct op_function[]){{"layer_norm", .build = build},
                                              {"layer_norm_no_bias", .build = build_no_bias},
                                              {"layer_norm_eps", .build = build_eps},
                                              {0}},
};
