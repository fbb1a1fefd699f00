/* cross_entropy where ranks divide the classes, without logits of all of them anywhere (Shoeybi et al., "Megatron-LM",
 * arXiv:1909.08053, section 3).
 *
 * cross_entropy_part: what a rank's logits add to row r: lse[r] = ln of the sum of e^logits[r], linear[r] = (1 - s)
 * logits[r][own[r]] + s / classes the sum of logits[r], where s is `smoothing`, own[r] the target among the rank's own
 * classes or -1 if it is another rank's, and `classes` their number on all ranks. dlogits[r][v] = d_lse[r]
 * e^(logits[r][v] - lse[r]) + d_linear[r] (s / classes + (1 - s) [v is own[r]]). With an input `columns`, the logits
 * from that many on are padding: they count for nothing, and dlogits is 0 there.
 *
 * cross_entropy_combined: of these of all ranks, [ranks][rows] each, the loss, each row's lse, and scale as
 * cross_entropy has them: lse[r] = ln of the sum of e^parts[i][r], a row's loss = lse - the sum of linear[i][r] + z
 * lse^2. d_parts[i][r] = d_loss scale (1 + 2 z lse[r]) e^(parts[i][r] - lse[r]), d_linear[i][r] = - d_loss scale; 0 in
 * rows whose target is `ignore`. */
#include <math.h>

#include "gen/ops/support/support.h"

/* ---- The rows of a rank ---- */

static struct shape rows_shape(struct shape logits) {
  return shape_of(2, (int64_t)1, op_rows(logits));
}

static int infer_part(struct arena *arena, const struct node *node, struct shape *shapes, enum dtype *dtypes,
                      const char **error) {
  if (!op_check_float(arena, node, 0, error) || !op_check_rank(arena, node, 0, 1, error)) return 0;
  if (!op_check_dtype(arena, node, 1, DTYPE_INT32, error)) return 0;
  struct shape logits = node->inputs[0]->shape;
  if (!op_check_shape(arena, node, 1, op_leading(logits), "one for each row of logits", error)) return 0;
  shapes[0] = shapes[1] = rows_shape(logits);
  dtypes[0] = dtypes[1] = DTYPE_FLOAT32;
  return 2;
}

/* The columns that count; `index`: of the input that says it, if there is one. */
static int64_t own_columns(const struct node *node, const double *const *inputs, int index, struct shape logits) {
  return node->n_inputs > index ? (int64_t)inputs[index][0] : op_columns(logits);
}

static void reference_part(const struct node *node, const double *const *inputs, double *const *outputs) {
  int64_t columns = op_columns(node->inputs[0]->shape), rows = op_rows(node->inputs[0]->shape);
  int64_t own = own_columns(node, inputs, 2, node->inputs[0]->shape);
  double s = node_real(node, "smoothing");
  for (int64_t r = 0; r < rows; r++) {
    const double *logits = inputs[0] + r * columns;
    double highest = logits[0], sum = 0, total = 0;
    for (int64_t c = 1; c < own; c++) highest = fmax(highest, logits[c]);
    for (int64_t c = 0; c < own; c++) {
      sum += exp(logits[c] - highest);
      total += logits[c];
    }
    outputs[0][r] = highest + log(sum);
    outputs[1][r] = s / (double)node_int(node, "classes") * total;
    if (inputs[1][r] >= 0) outputs[1][r] += (1 - s) * logits[(int64_t)inputs[1][r]];
  }
}

static void gradient_part(struct builder *builder, const struct node *node, struct value *const *dy,
                          struct value **dx) {
  bool padded = node->n_inputs > 2;
  struct value *inputs[] = {
      dy[0], dy[1], node->inputs[0], node->outputs[0], node->inputs[1], padded ? node->inputs[2] : NULL};
  dx[0] = builder_op(builder, "cross_entropy_part_backward", inputs, 5 + padded, node->attributes, node->n_attributes);
}

static int64_t index_limit(const struct node *node, int input) {
  return input == 1 ? op_columns(node->inputs[0]->shape) : 0;
}

static struct node *over_matmul(struct builder *builder, const struct node *node, struct value *a, struct value *b,
                                int64_t rows, int64_t pitch) {
  bool padded = node->n_inputs > 2;
  struct value *inputs[] = {a, b, node->inputs[1], padded ? node->inputs[2] : NULL};
  struct attribute attributes[] = {node->attributes[0], node->attributes[1], node->attributes[2],
                                   attribute_int("rows", rows), attribute_int("pitch", pitch)};
  return builder_node(builder, "linear_cross_entropy_part", inputs, 3 + padded, attributes, 5);
}

static const struct op_kind kind_part = {
    .name = "cross_entropy_part",
    .class = OP_KERNEL,
    .input_names = {"logits", "own", "columns"},
    .output_names = {"lse", "linear"},
    .infer = infer_part,
    .gradient = gradient_part,
    .cost.flops_each = 4,
    .index.limit = index_limit,
    .index.ignores = true,
    .fusion.over_matmul = over_matmul,
    .reference.evaluate = reference_part,
};

static int infer_part_backward(struct arena *arena, const struct node *node, struct shape *shapes, enum dtype *dtypes,
                               const char **error) {
  struct shape logits = node->inputs[2]->shape;
  for (int i = 0; i < 2; i++)
    if (!op_check_shape(arena, node, i, rows_shape(logits), "one for each row of logits", error)) return 0;
  return op_result(shapes, dtypes, logits, node->inputs[2]->dtype);
}

static void reference_part_backward(const struct node *node, const double *const *inputs, double *const *outputs) {
  int64_t columns = op_columns(node->inputs[2]->shape), rows = op_rows(node->inputs[2]->shape);
  int64_t own = own_columns(node, inputs, 5, node->inputs[2]->shape);
  double s = node_real(node, "smoothing"), even = s / (double)node_int(node, "classes");
  for (int64_t r = 0; r < rows; r++)
    for (int64_t c = 0; c < columns; c++) {
      double certain = c == (int64_t)inputs[4][r] ? 1 - s : 0;
      double p = exp(inputs[2][r * columns + c] - inputs[3][r]);
      outputs[0][r * columns + c] = c < own ? inputs[0][r] * p + inputs[1][r] * (even + certain) : 0;
    }
}

static double flops_part_backward(const struct node *node) {
  return op_flops_each(node, 2, 3);
}

static const struct op_kind kind_part_backward = {
    .name = "cross_entropy_part_backward",
    .class = OP_KERNEL,
    .template_name = "cross_entropy_part",
    .input_names = {"d_lse", "d_linear", "logits", "lse", "own", "columns"},
    .output_names = {"dlogits"},
    .infer = infer_part_backward,
    .memory.accumulates = 1,
    .memory.in_place = {3}, /* of the logits */
    .cost.flops = flops_part_backward,
    .reference.evaluate = reference_part_backward,
};

/* ---- The loss of all ranks' rows ---- */

static int infer_combined(struct arena *arena, const struct node *node, struct shape *shapes, enum dtype *dtypes,
                          const char **error) {
  int64_t rows = shape_count(node->inputs[2]->shape);
  if (!op_check_dtype(arena, node, 2, DTYPE_INT32, error)) return 0;
  struct shape wanted = shape_of(2, node_int(node, "ranks"), rows);
  for (int i = 0; i < 2; i++)
    if (!op_check_dtype(arena, node, i, DTYPE_FLOAT32, error) ||
        !op_check_shape(arena, node, i, wanted, "one for each rank and target", error))
      return 0;
  shapes[0] = shapes[2] = (struct shape){0};
  shapes[1] = shape_of(1, rows);
  dtypes[0] = dtypes[1] = dtypes[2] = DTYPE_FLOAT32;
  return 3;
}

static void reference_combined(const struct node *node, const double *const *inputs, double *const *outputs) {
  int64_t ranks = node_int(node, "ranks"), rows = shape_count(node->inputs[2]->shape), counted = 0;
  double total = 0;
  for (int64_t r = 0; r < rows; r++) {
    double highest = inputs[0][r], sum = 0, linear = 0;
    for (int64_t i = 1; i < ranks; i++) highest = fmax(highest, inputs[0][i * rows + r]);
    for (int64_t i = 0; i < ranks; i++) {
      sum += exp(inputs[0][i * rows + r] - highest);
      linear += inputs[1][i * rows + r];
    }
    double lse = outputs[1][r] = highest + log(sum);
    if ((int64_t)inputs[2][r] == node_int(node, "ignore")) continue;
    total += lse - linear + node_real(node, "z") * lse * lse;
    counted++;
  }
  outputs[0][0] = total / (double)counted;
  outputs[2][0] = 1 / (double)counted;
}

static void gradient_combined(struct builder *builder, const struct node *node, struct value *const *dy,
                              struct value **dx) {
  struct value *inputs[] = {dy[0], node->inputs[0], node->outputs[1], node->outputs[2], node->inputs[2]};
  struct node *back =
      builder_node(builder, "cross_entropy_combined_backward", inputs, 5, node->attributes, node->n_attributes);
  for (int i = 0; back != NULL && i < 2; i++) dx[i] = back->outputs[i];
}

static const struct op_kind kind_combined = {
    .name = "cross_entropy_combined",
    .class = OP_KERNEL,
    .template_name = "cross_entropy_part",
    .input_names = {"parts", "linear", "targets"},
    .output_names = {"loss", "lse", "scale"},
    .infer = infer_combined,
    .gradient = gradient_combined,
    .cost.flops_each = 4,
    .evaluation.mean = op_mean_over_targets,
    .reference.evaluate = reference_combined,
};

static int infer_combined_backward(struct arena *arena, const struct node *node, struct shape *shapes,
                                   enum dtype *dtypes, const char **error) {
  if (!op_check_shape(arena, node, 0, (struct shape){0}, "the gradient of a scalar", error)) return 0;
  shapes[0] = shapes[1] = node->inputs[1]->shape;
  dtypes[0] = dtypes[1] = DTYPE_FLOAT32;
  return 2;
}

static void reference_combined_backward(const struct node *node, const double *const *inputs, double *const *outputs) {
  int64_t ranks = node_int(node, "ranks"), rows = shape_count(node->inputs[4]->shape);
  for (int64_t r = 0; r < rows; r++) {
    bool counts = (int64_t)inputs[4][r] != node_int(node, "ignore");
    double factor = counts ? inputs[0][0] * inputs[3][0] : 0, lse = inputs[2][r];
    for (int64_t i = 0; i < ranks; i++) {
      int64_t at = i * rows + r;
      outputs[0][at] = factor * (1 + 2 * node_real(node, "z") * lse) * exp(inputs[1][at] - lse);
      outputs[1][at] = -factor;
    }
  }
}

static double flops_combined_backward(const struct node *node) {
  return op_flops_each(node, 1, 3);
}

static const struct op_kind kind_combined_backward = {
    .name = "cross_entropy_combined_backward",
    .class = OP_KERNEL,
    .template_name = "cross_entropy_part",
    .input_names = {"d_loss", "parts", "lse", "scale", "targets"},
    .output_names = {"d_parts", "d_linear"},
    .infer = infer_combined_backward,
    .cost.flops = flops_combined_backward,
    .reference.evaluate = reference_combined_backward,
};

const struct op_file op_file_cross_entropy_part = {
    .name = "cross_entropy_part",
    .kinds =
        (const struct op_kind *const[]){&kind_part, &kind_part_backward, &kind_combined, &kind_combined_backward, NULL},
};
