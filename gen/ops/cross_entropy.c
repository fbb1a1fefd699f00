/* The mean of lse[r] - logits[r][targets[r]] over the rows whose target is not `ignore`, lse[r] = ln of the sum of
 * e^logits[r]; scale = 1 / the number of those rows. dlogits[r][v] = d_loss scale (e^(logits[r][v] - lse[r]) - [v is
 * the target]), 0 in ignored rows. Without a row that counts both are not a number, as in PyTorch. */
#include <math.h>

#include "gen/ir/op_support.h"

/* Ignores nothing that is a class: PyTorch's default of torch.nn.functional.cross_entropy. */
enum { IGNORE_DEFAULT = -100 };

static int infer(struct arena *arena, const struct node *node, struct shape *shapes, enum dtype *dtypes,
                 const char **error) {
  if (!op_check_dtype(arena, node, 0, DTYPE_FLOAT32, error) || !op_check_rank(arena, node, 0, 1, error)) return 0;
  if (!op_check_dtype(arena, node, 1, DTYPE_INT32, error)) return 0;
  struct shape logits = node->inputs[0]->shape;
  const char *what = arena_printf(arena, "one for each row of %s", op_operand_text(arena, node, 0));
  if (!op_check_shape(arena, node, 1, op_leading(logits), what, error)) return 0;
  shapes[0] = shapes[2] = (struct shape){0};
  shapes[1] = shape_of(1, op_rows(logits));
  dtypes[0] = dtypes[1] = dtypes[2] = DTYPE_FLOAT32;
  return 3;
}

static double log_sum_exp(const double *x, int64_t columns) {
  double highest = x[0], sum = 0;
  for (int64_t c = 1; c < columns; c++) highest = fmax(highest, x[c]);
  for (int64_t c = 0; c < columns; c++) sum += exp(x[c] - highest);
  return highest + log(sum);
}

static void reference(const struct node *node, const double *const *inputs, double *const *outputs) {
  int64_t columns = op_columns(node->inputs[0]->shape), rows = op_rows(node->inputs[0]->shape), counted = 0;
  double total = 0;
  for (int64_t r = 0; r < rows; r++) {
    const double *logits = inputs[0] + r * columns;
    int64_t target = (int64_t)inputs[1][r];
    outputs[1][r] = log_sum_exp(logits, columns);
    if (target == node_int(node, "ignore")) continue;
    total += outputs[1][r] - logits[target];
    counted++;
  }
  outputs[0][0] = total / (double)counted;
  outputs[2][0] = 1 / (double)counted;
}

static void gradient(struct builder *builder, const struct node *node, struct value *const *dy, struct value **dx) {
  struct value *inputs[] = {dy[0], node->inputs[0], node->outputs[1], node->outputs[2], node->inputs[1]};
  struct attribute ignore = attribute_int("ignore", node_int(node, "ignore"));
  dx[0] = builder_op(builder, "cross_entropy_backward", inputs, 5, &ignore, 1);
}

static double flops(const struct node *node) {
  return op_flops_each(node, 0, 4);
}

static int64_t index_limit(const struct node *node, int input) {
  const struct shape *logits = &node->inputs[0]->shape;
  return input == 1 ? logits->dim[logits->rank - 1] : 0;
}

static const struct op_kind kind = {
    .name = "cross_entropy",
    .class = OP_KERNEL,
    .input_names = {"logits", "targets"},
    .output_names = {"loss", "lse", "scale"},
    .infer = infer,
    .gradient = gradient,
    .autocast = AUTOCAST_FLOAT32,
    .flops = flops,
    .index_limit = index_limit,
    .reference = reference,
};

/* ---- Backward ---- */

static int infer_backward(struct arena *arena, const struct node *node, struct shape *shapes, enum dtype *dtypes,
                          const char **error) {
  if (!op_check_shape(arena, node, 0, (struct shape){0}, "the gradient of a scalar", error)) return 0;
  return op_result(shapes, dtypes, node->inputs[1]->shape, DTYPE_FLOAT32);
}

static void reference_backward(const struct node *node, const double *const *inputs, double *const *outputs) {
  int64_t columns = op_columns(node->inputs[1]->shape), rows = op_rows(node->inputs[1]->shape);
  for (int64_t r = 0; r < rows; r++) {
    const double *logits = inputs[1] + r * columns;
    int64_t target = (int64_t)inputs[4][r];
    double factor = target == node_int(node, "ignore") ? 0 : inputs[0][0] * inputs[3][0];
    for (int64_t c = 0; c < columns; c++)
      outputs[0][r * columns + c] = factor * (exp(logits[c] - inputs[2][r]) - (c == target ? 1 : 0));
  }
}

static double flops_backward(const struct node *node) {
  return op_flops_each(node, 1, 3);
}

static const struct op_kind kind_backward = {
    .name = "cross_entropy_backward",
    .class = OP_KERNEL,
    .template_name = "cross_entropy",
    .input_names = {"d_loss", "logits", "lse", "scale", "targets"},
    .output_names = {"dlogits"},
    .infer = infer_backward,
    .accumulates = 1,
    .in_place = {2}, /* of the logits */
    .autocast = AUTOCAST_FLOAT32,
    .flops = flops_backward,
    .reference = reference_backward,
};

/* ---- Functions ---- */

static struct value *cross_entropy(struct builder *builder, const struct argument *arguments, int64_t ignored) {
  struct value *inputs[] = {op_tensor(arguments, 0), op_tensor(arguments, 1)};
  struct attribute ignore = attribute_int("ignore", ignored);
  return builder_op(builder, "cross_entropy", inputs, 2, &ignore, 1);
}

static struct value *build(struct builder *builder, const struct argument *arguments, int count) {
  (void)count;
  return cross_entropy(builder, arguments, IGNORE_DEFAULT);
}

static struct value *build_ignore(struct builder *builder, const struct argument *arguments, int count) {
  (void)count;
  return cross_entropy(builder, arguments, arguments[2].integer);
}

const struct op_file op_file_cross_entropy = {
    .name = "cross_entropy",
    .kinds = (const struct op_kind *const[]){&kind, &kind_backward, NULL},
    .functions = (const struct op_function[]){{"cross_entropy", build}, {"cross_entropy_ignore", build_ignore}, {0}},
};
