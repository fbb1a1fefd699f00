/* linear_cross_entropy of the classes that a rank has: cross_entropy_part (gen/ops/cross_entropy_part.c) over logits =
 * x weight, of which `rows` rows at a time are in memory. */
#include "gen/ops/support/logits.h"

static struct shape rows_shape(const struct value *x) {
  return shape_of(2, (int64_t)1, op_rows(x->shape));
}

static int infer(struct arena *arena, const struct node *node, struct shape *shapes, enum dtype *dtypes,
                 const char **error) {
  if (!op_logits_check(arena, node, 0, 1, 2, error)) return 0;
  shapes[0] = shapes[1] = rows_shape(node->inputs[0]);
  shapes[2] = op_logits_chunk(node);
  dtypes[0] = dtypes[1] = DTYPE_FLOAT32;
  dtypes[2] = node->inputs[0]->dtype;
  return 3;
}

static void reference(const struct node *node, const double *const *inputs, double *const *outputs) {
  const struct value *x = node->inputs[0], *weight = node->inputs[1];
  struct arena *arena = arena_new();
  struct over_logits *parts = op_over_logits(arena, node, "cross_entropy_part", x, weight);
  parts->operands[0] = &parts->logits;
  parts->node.n_inputs--;
  const double *logits = op_logits_multiply(arena, inputs[0], inputs[1], op_rows(x->shape), op_columns(x->shape),
                                            op_logits_classes(weight));
  parts->node.kind->reference.evaluate(
      &parts->node, (const double *const[]){logits, inputs[2], node->n_inputs > 3 ? inputs[3] : NULL}, outputs);
  op_logits_clear(node->outputs[2], outputs[2]);
  arena_free(arena);
}

static void gradient(struct builder *builder, const struct node *node, struct value *const *dy, struct value **dx) {
  bool padded = node->n_inputs > 3;
  struct value *inputs[] = {dy[0],
                            dy[1],
                            node->inputs[0],
                            node->inputs[1],
                            node->outputs[0],
                            node->inputs[2],
                            padded ? node->inputs[3] : NULL};
  struct node *back = builder_node(builder, "linear_cross_entropy_part_backward", inputs, 6 + padded, node->attributes,
                                   node->n_attributes);
  for (int i = 0; back != NULL && i < 2; i++)
    if (builder_wants_gradient(builder, node->inputs[i])) dx[i] = back->outputs[i];
}

static bool accepts(const struct node *node, bool output, int index, const int64_t *strides) {
  const struct value *value = output ? node->outputs[index] : node->inputs[index];
  return op_is_dense(value->shape, strides) || (!output && index == 1 && op_logits_is_matrix(value->shape, strides));
}

static double matmul_flops(const struct node *node) {
  return op_logits_matmul_flops(node->inputs[0], node->inputs[1]);
}

static double flops(const struct node *node) {
  return matmul_flops(node) + 4 * (double)op_rows(node->inputs[0]->shape) * (double)op_logits_classes(node->inputs[1]);
}

static int gemms(const struct node *node, struct op_gemm *gemms) {
  return op_logits_gemms(node, node->inputs[0], node->inputs[1], NULL, true, gemms);
}

static int64_t index_limit(const struct node *node, int input) {
  return input == 2 ? op_logits_classes(node->inputs[1]) : 0;
}

static const struct op_kind kind = {
    .name = "linear_cross_entropy_part",
    .class = OP_KERNEL,
    .template_name = "linear_cross_entropy_part",
    .input_names = {"x", "weight", "own", "columns"},
    .output_names = {"lse", "linear", "logits"},
    .infer = infer,
    .gradient = gradient,
    .layout.accepts = accepts,
    .memory.workspace = 4,
    .types.autocast = {AUTOCAST_FLOAT32, AUTOCAST_FLOAT32},
    .cost.flops = flops,
    .cost.matmul_flops = matmul_flops,
    .library.gemms = gemms,
    .index.limit = index_limit,
    .index.ignores = true,
    .reference.evaluate = reference,
};

static int infer_backward(struct arena *arena, const struct node *node, struct shape *shapes, enum dtype *dtypes,
                          const char **error) {
  for (int i = 0; i < 2; i++)
    if (!op_check_shape(arena, node, i, rows_shape(node->inputs[2]), "one for each row of x", error)) return 0;
  if (!op_logits_check(arena, node, 2, 3, 5, error)) return 0;
  return op_logits_infer_gradients(node, 2, 3, shapes, dtypes);
}

static bool accepts_backward(const struct node *node, bool output, int index, const int64_t *strides) {
  const struct value *value = output ? node->outputs[index] : node->inputs[index];
  return op_is_dense(value->shape, strides) ||
         (index == (output ? 1 : 3) && op_logits_is_matrix(value->shape, strides));
}

static void reference_backward(const struct node *node, const double *const *inputs, double *const *outputs) {
  const struct value *x = node->inputs[2], *weight = node->inputs[3];
  struct arena *arena = arena_new();
  struct over_logits *parts = op_over_logits(arena, node, "cross_entropy_part_backward", x, weight);
  int64_t rows = op_rows(x->shape), depth = op_columns(x->shape), columns = op_logits_classes(weight);
  parts->operands[2] = &parts->logits;
  parts->node.n_inputs--;
  const double *logits = op_logits_multiply(arena, inputs[2], inputs[3], rows, depth, columns);
  double *slopes = arena_alloc(arena, (size_t)(rows * columns) * sizeof *slopes);
  parts->node.kind->reference.evaluate(&parts->node,
                                       (const double *const[]){inputs[0], inputs[1], logits, inputs[4], inputs[5],
                                                               node->n_inputs > 6 ? inputs[6] : NULL},
                                       &slopes);
  op_logits_gradients(slopes, inputs[2], inputs[3], rows, depth, columns, outputs);
  op_logits_clear(node->outputs[2], outputs[2]);
  arena_free(arena);
}

static double matmul_flops_backward(const struct node *node) {
  return 3 * op_logits_matmul_flops(node->inputs[2], node->inputs[3]);
}

static double flops_backward(const struct node *node) {
  return matmul_flops_backward(node) +
         3 * (double)op_rows(node->inputs[2]->shape) * (double)op_logits_classes(node->inputs[3]);
}

static int gemms_backward(const struct node *node, struct op_gemm *gemms) {
  return op_logits_gemms(node, node->inputs[2], node->inputs[3], node->outputs[1], true, gemms);
}

static int64_t index_limit_backward(const struct node *node, int input) {
  return input == 5 ? op_logits_classes(node->inputs[3]) : 0;
}

static const struct op_kind kind_backward = {
    .name = "linear_cross_entropy_part_backward",
    .class = OP_KERNEL,
    .template_name = "linear_cross_entropy_part",
    .input_names = {"d_lse", "d_linear", "x", "weight", "lse", "own", "columns"},
    .output_names = {"dx", "dweight", "logits"},
    .infer = infer_backward,
    .layout.accepts = accepts_backward,
    .memory.accumulates = 3,
    .memory.workspace = 4,
    .types.autocast = {AUTOCAST_FLOAT32, AUTOCAST_FLOAT32},
    .cost.flops = flops_backward,
    .cost.matmul_flops = matmul_flops_backward,
    .library.gemms = gemms_backward,
    .index.limit = index_limit_backward,
    .index.ignores = true,
    .reference.evaluate = reference_backward,
};

const struct op_file op_file_linear_cross_entropy_part = {
    .name = "linear_cross_entropy_part",
    .kinds = (const struct op_kind *const[]){&kind, &kind_backward, NULL},
};
