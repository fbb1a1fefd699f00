/* Normalisation by the root of the mean square over the last dimension (Zhang, Sennrich, arXiv:1910.07467, eq. 4).
 * y[r][c] = n[r][c] weight[c], n = x rstd, rstd = 1 / sqrt(avg(x^2) + eps).
 * With g = dy weight: dx = rstd (g - n avg(g n)), dweight = the sum over rows of dy n. */
#include <math.h>

#include "gen/onnx/onnx.h"
#include "gen/ops/support/support.h"
#include "gen/stablehlo/stablehlo.h"

static const struct op_kind kind, kind_of_sum, kind_plus, kind_with_bits16;

static int infer(struct arena *arena, const struct node *node, struct shape *shapes, enum dtype *dtypes,
                 const char **error) {
  struct shape x = node->inputs[0]->shape;
  if (!op_check_rank(arena, node, 0, 1, error)) return 0;
  for (int i = 0; i < 2; i++)
    if (!op_check_float(arena, node, i, error)) return 0;
  const char *what = arena_printf(arena, "one for each column of %s", op_operand_text(arena, node, 0));
  if (!op_check_shape(arena, node, 1, shape_of(1, op_columns(x)), what, error)) return 0;
  shapes[0] = x;
  shapes[1] = shape_of(1, op_rows(x));
  dtypes[0] = node->inputs[0]->dtype;
  dtypes[1] = DTYPE_FLOAT32;
  return 2;
}

static void reference(const struct node *node, const double *const *inputs, double *const *outputs) {
  int64_t columns = op_columns(node->inputs[0]->shape), rows = op_rows(node->inputs[0]->shape);
  for (int64_t r = 0; r < rows; r++) {
    const double *x = inputs[0] + r * columns;
    double squares = 0;
    for (int64_t c = 0; c < columns; c++) squares += x[c] * x[c];
    double rstd = 1 / sqrt(squares / (double)columns + node_real(node, "eps"));
    for (int64_t c = 0; c < columns; c++) outputs[0][r * columns + c] = x[c] * rstd * inputs[1][c];
    outputs[1][r] = rstd;
  }
}

static void gradient(struct builder *builder, const struct node *node, struct value *const *dy, struct value **dx) {
  struct value *inputs[] = {dy[0], node->inputs[0], node->inputs[1], node->outputs[1]};
  struct node *backward = builder_node(builder, "rms_norm_backward", inputs, 4, NULL, 0);
  for (int i = 0; i < 2 && backward != NULL; i++) dx[i] = backward->outputs[i];
}

static void write_onnx(struct onnx *onnx) {
  const struct onnx_extent last = onnx_fixed(-1);
  const char *x = onnx_input(onnx, 0), *squares = onnx_binary(onnx, "Mul", x, x);
  const char *mean = onnx_binary(onnx, "ReduceMean", squares, onnx_shape(onnx, &last, 1));
  const char *root = onnx_unary(onnx, "Sqrt", onnx_binary(onnx, "Add", mean, onnx_real_tensor(onnx, "eps")));
  onnx_result(onnx, 0, onnx_binary(onnx, "Mul", onnx_binary(onnx, "Div", x, root), onnx_input(onnx, 1)));
}

static void lower(struct stablehlo *hlo) {
  const struct hlo x = hlo_input(hlo, 0), squares = hlo_row_mean(hlo, hlo_mul(hlo, x, x));
  const struct hlo eps = hlo_number(node_real(hlo_node(hlo), "eps"));
  const struct hlo rstd = hlo_unary(hlo, "rsqrt", hlo_add(hlo, squares, eps));
  hlo_result(hlo, 0, hlo_mul(hlo, hlo_mul(hlo, x, rstd), hlo_input(hlo, 1)));
  hlo_result(hlo, 1, rstd);
}

static const struct op_kind kind = {
    .name = "rms_norm",
    .lower.write = lower,
    .onnx.write = write_onnx,
    .class = OP_KERNEL,
    .template_name = "norm",
    .input_names = {"x", "weight"},
    .output_names = {"y", "rstd"},
    .infer = infer,
    .sequence.along = op_along_rows,
    .gradient = gradient,
    .types.autocast = {AUTOCAST_AS_IS, AUTOCAST_FLOAT32},
    .cost.flops_each = 4,
    .reference.evaluate = reference,
};

/* ---- Backward ---- */

static int infer_backward(struct arena *arena, const struct node *node, struct shape *shapes, enum dtype *dtypes,
                          const char **error) {
  return op_infer_norm_backward(arena, node, shapes, dtypes, 2, error);
}

static void reference_backward(const struct node *node, const double *const *inputs, double *const *outputs) {
  int64_t columns = op_columns(node->inputs[1]->shape), rows = op_rows(node->inputs[1]->shape);
  const double *weight = inputs[2];
  for (int64_t c = 0; c < columns; c++) outputs[1][c] = 0;
  for (int64_t r = 0; r < rows; r++) {
    const double *dy = inputs[0] + r * columns, *x = inputs[1] + r * columns;
    double rstd = inputs[3][r], product = 0;
    for (int64_t c = 0; c < columns; c++) product += dy[c] * weight[c] * x[c] * rstd;
    for (int64_t c = 0; c < columns; c++) {
      outputs[0][r * columns + c] = rstd * (dy[c] * weight[c] - x[c] * rstd * product / (double)columns);
      outputs[1][c] += dy[c] * x[c] * rstd;
    }
  }
}

static void lower_backward(struct stablehlo *hlo) {
  const struct hlo dy = hlo_input(hlo, 0), x = hlo_input(hlo, 1), g = hlo_mul(hlo, dy, hlo_input(hlo, 2));
  struct shape column = x.shape;
  column.dim[column.rank - 1] = 1;
  const struct hlo rstd = hlo_reshape(hlo, hlo_input(hlo, 3), column), n = hlo_mul(hlo, x, rstd);
  const struct hlo along = hlo_mul(hlo, n, hlo_row_mean(hlo, hlo_mul(hlo, g, n)));
  hlo_result(hlo, 0, hlo_mul(hlo, hlo_sub(hlo, g, along), rstd));
  hlo_result(hlo, 1, hlo_column_sums(hlo, hlo_mul(hlo, dy, n)));
}

static const struct op_kind kind_backward = {
    .name = "rms_norm_backward",
    .lower.write = lower_backward,
    .class = OP_KERNEL,
    .template_name = "norm",
    .input_names = {"dy", "x", "weight", "rstd"},
    .output_names = {"dx", "dweight"},
    .infer = infer_backward,
    .memory.accumulates = 1 | 2,
    .memory.in_place = {1},
    .types.autocast = {AUTOCAST_AS_IS, AUTOCAST_FLOAT32},
    .cost.flops_each = 10,
    .reference.evaluate = reference_backward,
};

/* ---- With additions, which the plan makes of nodes that were differentiated before ---- */

static const struct op_kind kind_of_sum = {
    .name = "add_rms_norm",
    .class = OP_KERNEL,
    .template_name = "norm",
    .input_names = {"a", "b", "weight"},
    .output_names = {"y", "rstd", "x"},
    .memory.in_place = {0, 0, 1},
    .cost.flops_each = 5,
    .fusion.plain = &kind,
    .reference.evaluate = op_reference_of_sum,
};

static const struct op_kind kind_plus = {
    .name = "rms_norm_plus_backward",
    .class = OP_KERNEL,
    .template_name = "norm",
    .input_names = {"dy", "x", "weight", "rstd", "other"},
    .output_names = {"dx", "dweight"},
    .memory.accumulates = 2,
    .memory.in_place = {5},
    .cost.flops_each = 11,
    .fusion.plain = &kind_backward,
    .reference.evaluate = op_reference_plus,
};

static const struct op_kind kind_with_bits16 = {
    .name = "rms_norm_plus_bits16_backward",
    .class = OP_KERNEL,
    .template_name = "norm",
    .input_names = {"dy", "x", "weight", "rstd", "other"},
    .output_names = {"dx", "narrow", "dweight"},
    .memory.accumulates = 4,
    .memory.in_place = {5},
    .cost.flops_each = 11,
    .fusion.plain = &kind_backward,
    .reference.evaluate = op_reference_with_bits16,
};

/* ---- Functions: the weight starts at one, whatever the scope says ---- */

static struct value *rms_norm(struct builder *builder, const struct argument *arguments, double eps) {
  struct value *x = op_tensor(arguments, 1);
  if (x == NULL) return NULL;
  struct shape shape = shape_of(1, op_columns(x->shape));
  struct value *inputs[] = {x, op_fixed_parameter(builder, arguments[0].scope, "weight", shape, INIT_ONES)};
  struct attribute attribute = attribute_real("eps", eps);
  return builder_op(builder, "rms_norm", inputs, 2, &attribute, 1);
}

static struct value *build(struct builder *builder, const struct argument *arguments, int count) {
  (void)count;
  return rms_norm(builder, arguments, 1e-6);
}

static struct value *build_eps(struct builder *builder, const struct argument *arguments, int count) {
  (void)count;
  return rms_norm(builder, arguments, arguments[2].real);
}

const struct op_file op_file_rms_norm = {
    .name = "rms_norm",
    .kinds = (const struct op_kind *const[]){&kind, &kind_backward, &kind_of_sum, &kind_plus, &kind_with_bits16, NULL},
    .functions = (const struct op_function[]){{"rms_norm", .build = build}, {"rms_norm_eps", .build = build_eps}, {0}},
};
