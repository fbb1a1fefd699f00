/* cross_entropy over logits = x weight, of which `rows` rows at a time are in memory: the forward saves lse alone, the
 * backward computes each chunk of logits again, and from it at once its part of dx and dweight (Wijmans et al.,
 * arXiv:2411.09009; Hsu et al., Liger Kernel, arXiv:2410.10989). x [..., C], weight [C, V]; dx = dlogits weight^T,
 * dweight = x^T dlogits, which adds up in its own type: the plan widens a parameter's. The last output is workspace for
 * a chunk, of x's type, in rows of `pitch` elements.
 *
 * Where all rows are in memory at once (`saved`), the logits stay there for the backward, which then makes of them, in
 * their memory, their gradient and its matmuls: what is left is that rows begin where a library wants them.
 *
 * As the loss is a mean whose gradient is known before any logit is, both can be computed from a chunk while it is in
 * memory: one node of the backward (`fused_loss_backward`) computes each chunk of logits once, and from it the loss and
 * the gradients (Hsu et al.). */
#include "gen/ops/support/logits.h"
#include "gen/ops/support/lowered.h"

enum { N_ATTRIBUTES = 5, LOGITS = 6 };

static int infer(struct arena *arena, const struct node *node, struct shape *shapes, enum dtype *dtypes,
                 const char **error) {
  if (!op_logits_check(arena, node, 0, 1, 2, error)) return 0;
  shapes[0] = shapes[2] = (struct shape){0};
  shapes[1] = shape_of(1, op_rows(node->inputs[0]->shape));
  shapes[3] = op_logits_chunk(node);
  for (int i = 0; i < 3; i++) dtypes[i] = DTYPE_FLOAT32;
  dtypes[3] = node->inputs[0]->dtype;
  return 4;
}

static const struct op_kind kind_saved, kind_forward_backward;
static bool is_saved(const struct op_kind *kind) {
  return kind == &kind_saved;
}

static bool accepts(const struct node *node, bool output, int index, const int64_t *strides) {
  const struct value *value = output ? node->outputs[index] : node->inputs[index];
  return op_is_dense(value->shape, strides) || (!output && index == 1 && op_logits_is_matrix(value->shape, strides));
}

/* ---- The reference: that of the two operations ---- */

/* Rows without gaps, into rows of the chunk's pitch. */
static void store_logits(const struct value *chunk, const double *logits, int64_t columns, double *elements) {
  int64_t pitch = op_columns(chunk->shape);
  op_logits_clear(chunk, elements);
  for (int64_t i = 0; i < op_rows(chunk->shape) * columns; i++) elements[i / columns * pitch + i % columns] = logits[i];
}

static void reference(const struct node *node, const double *const *inputs, double *const *outputs) {
  const struct value *x = node->inputs[0], *weight = node->inputs[1];
  struct arena *arena = arena_new();
  struct over_logits *parts = op_over_logits(arena, node, "cross_entropy", x, weight);
  parts->operands[0] = &parts->logits;
  parts->operands[1] = node->inputs[2];
  const double *logits = op_logits_multiply(arena, inputs[0], inputs[1], op_rows(x->shape), op_columns(x->shape),
                                            op_logits_classes(weight));
  parts->node.kind->reference.evaluate(&parts->node, (const double *const[]){logits, inputs[2]}, outputs);
  if (is_saved(node->kind))
    store_logits(node->outputs[3], logits, op_logits_classes(weight), outputs[3]);
  else
    op_logits_clear(node->outputs[3], outputs[3]);
  arena_free(arena);
}

static void gradient(struct builder *builder, const struct node *node, struct value *const *dy, struct value **dx) {
  struct value *inputs[] = {dy[0],           node->inputs[0], node->inputs[1], node->outputs[1], node->outputs[2],
                            node->inputs[2], node->outputs[3]};
  bool saved = is_saved(node->kind);
  const char *name = saved ? "saved_cross_entropy_backward" : "linear_cross_entropy_backward";
  struct node *back = builder_node(builder, name, inputs, LOGITS + saved, node->attributes, N_ATTRIBUTES);
  if (back == NULL) return;
  for (int i = 0; i < 2; i++)
    if (builder_wants_gradient(builder, node->inputs[i])) dx[i] = back->outputs[i];
}

static struct node *inverse_count(struct builder *builder, const struct node *node) {
  const struct attribute attributes[] = {node->attributes[0],
                                         attribute_int("classes", op_logits_classes(node->inputs[1]))};
  return builder_node(builder, "inverse_target_count", &node->inputs[2], 1, attributes, 2);
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

#define FORWARD                                                                                                        \
  .class = OP_KERNEL, .template_name = "linear_cross_entropy", .input_names = {"x", "weight", "targets"},              \
  .output_names = {"loss", "lse", "scale", "logits"}, .infer = infer, .gradient = gradient, .layout.accepts = accepts, \
  .types.autocast = {AUTOCAST_FLOAT32, AUTOCAST_FLOAT32}, .cost.flops = flops, .cost.matmul_flops = matmul_flops,      \
  .library.gemms = gemms, .kernel.noted_input = 1 + 2, .index.limit = index_limit, .index.ignores = true,              \
  .evaluation.mean = op_mean_over_targets, .fusion.inverse_count = inverse_count, .reference.evaluate = reference

static struct hlo lower_logits(struct stablehlo *hlo, int x) {
  const struct hlo rows = hlo_raw_input(hlo, x);
  return hlo_dot(hlo, rows, hlo_raw_input(hlo, x + 1), 0, rows.shape.rank - 1, 0);
}

static void lower(struct stablehlo *hlo) {
  const struct hlo_losses losses = op_lower_cross_entropy(hlo, lower_logits(hlo, 0), hlo_raw_input(hlo, 2));
  hlo_result(hlo, 0, losses.loss);
  hlo_result(hlo, 1, losses.lse);
  hlo_result(hlo, 2, losses.scale);
}

static const struct op_kind kind = {FORWARD, .name = "linear_cross_entropy", .lower.write = lower,
                                    .memory.workspace = 8};
static const struct op_kind kind_saved = {FORWARD, .name = "saved_cross_entropy"};

/* ---- Backward ---- */

static int infer_backward(struct arena *arena, const struct node *node, struct shape *shapes, enum dtype *dtypes,
                          const char **error) {
  if (!op_check_shape(arena, node, 0, (struct shape){0}, "the gradient of a scalar", error)) return 0;
  if (!op_logits_check(arena, node, 1, 2, 5, error)) return 0;
  return op_logits_infer_gradients(node, 1, 2, shapes, dtypes);
}

static bool accepts_backward(const struct node *node, bool output, int index, const int64_t *strides) {
  const struct value *value = output ? node->outputs[index] : node->inputs[index];
  return op_is_dense(value->shape, strides) ||
         (index == (output ? 1 : 2) && op_logits_is_matrix(value->shape, strides));
}

static void reference_backward(const struct node *node, const double *const *inputs, double *const *outputs) {
  const struct value *x = node->inputs[1], *weight = node->inputs[2];
  int64_t rows = op_rows(x->shape), depth = op_columns(x->shape), columns = op_logits_classes(weight);
  struct arena *arena = arena_new();
  struct over_logits *parts = op_over_logits(arena, node, "cross_entropy_backward", x, weight);
  parts->operands[1] = &parts->logits;
  const double *logits = op_logits_multiply(arena, inputs[1], inputs[2], rows, depth, columns);
  double *slopes = arena_alloc(arena, (size_t)(rows * columns) * sizeof *slopes);
  parts->node.kind->reference.evaluate(
      &parts->node, (const double *const[]){inputs[0], logits, inputs[3], inputs[4], inputs[5]}, &slopes);
  op_logits_gradients(slopes, inputs[1], inputs[2], rows, depth, columns, outputs);
  op_logits_clear(node->outputs[2], outputs[2]);
  arena_free(arena);
}

static double matmul_flops_backward(const struct node *node) {
  return (node->n_inputs > LOGITS ? 2 : 3) * op_logits_matmul_flops(node->inputs[1], node->inputs[2]);
}

static int gemms_backward(const struct node *node, struct op_gemm *gemms) {
  return op_logits_gemms(node, node->inputs[1], node->inputs[2], node->outputs[1], node->n_inputs == LOGITS, gemms);
}

static double flops_backward(const struct node *node) {
  return matmul_flops_backward(node) +
         3 * (double)op_rows(node->inputs[1]->shape) * (double)op_logits_classes(node->inputs[2]);
}

#define BACKWARD                                                                                                       \
  .class = OP_KERNEL, .template_name = "linear_cross_entropy", .infer = infer_backward,                                \
  .layout.accepts = accepts_backward, .memory.accumulates = 3, .memory.workspace = 4,                                  \
  .types.autocast = {AUTOCAST_FLOAT32, AUTOCAST_FLOAT32}, .cost.flops = flops_backward,                                \
  .cost.matmul_flops = matmul_flops_backward, .library.gemms = gemms_backward,                                         \
  .reference.evaluate = reference_backward

static void lower_backward(struct stablehlo *hlo) {
  const struct hlo x = hlo_input(hlo, 1), weight = hlo_input(hlo, 2);
  const struct hlo slopes = op_lower_cross_entropy_backward(
      hlo, hlo_input(hlo, 0), lower_logits(hlo, 1), hlo_input(hlo, 3), hlo_input(hlo, 4), hlo_raw_input(hlo, 5));
  const struct shape rows = shape_of(2, op_rows(x.shape), op_columns(x.shape));
  const struct shape matrix = shape_of(2, op_rows(x.shape), op_columns(weight.shape));
  hlo_result(hlo, 0, hlo_dot(hlo, slopes, weight, 0, slopes.shape.rank - 1, 1));
  hlo_result(hlo, 1, hlo_dot(hlo, hlo_reshape(hlo, x, rows), hlo_reshape(hlo, slopes, matrix), 0, 0, 0));
}

static const struct op_kind kind_backward = {
    BACKWARD, .name = "linear_cross_entropy_backward", .lower.write = lower_backward,
    .input_names = {"d_loss", "x", "weight", "lse", "scale", "targets"}, .output_names = {"dx", "dweight", "logits"}};
static const struct op_kind kind_saved_backward = {
    BACKWARD, .name = "saved_cross_entropy_backward",
    .input_names = {"d_loss", "x", "weight", "lse", "scale", "targets", "saved"},
    .output_names = {"dx", "dweight", "logits"}, .memory.in_place = {0, 0, LOGITS + 1}};

/* ---- The loss and its gradient in one kernel ---- */

static int infer_inverse_count(struct arena *arena, const struct node *node, struct shape *shapes, enum dtype *dtypes,
                               const char **error) {
  if (!op_check_dtype(arena, node, 0, DTYPE_INT32, error)) return 0;
  return op_result(shapes, dtypes, (struct shape){0}, DTYPE_FLOAT32);
}

static void reference_inverse_count(const struct node *node, const double *const *inputs, double *const *outputs) {
  int64_t counted = 0;
  for (int64_t i = 0; i < shape_count(node->inputs[0]->shape); i++)
    counted += (int64_t)inputs[0][i] != node_int(node, "ignore");
  outputs[0][0] = 1 / (double)counted;
}

static int64_t index_limit_inverse_count(const struct node *node, int input) {
  (void)input;
  return node_int(node, "classes");
}

/* It counts: none of floating point. */
static double flops_inverse_count(const struct node *node) {
  (void)node;
  return 0;
}

static const struct op_kind kind_inverse_count = {
    .name = "inverse_target_count",
    .class = OP_KERNEL,
    .input_names = {"targets"},
    .output_names = {"scale"},
    .infer = infer_inverse_count,
    .index.limit = index_limit_inverse_count,
    .cost.flops = flops_inverse_count,
    .index.ignores = true,
    .reference.evaluate = reference_inverse_count,
};

static int infer_forward_backward(struct arena *arena, const struct node *node, struct shape *shapes,
                                  enum dtype *dtypes, const char **error) {
  if (!op_check_shape(arena, node, 0, (struct shape){0}, "the gradient of a scalar", error)) return 0;
  if (!op_logits_check(arena, node, 1, 2, 4, error)) return 0;
  shapes[0] = (struct shape){0};
  shapes[1] = node->inputs[1]->shape;
  shapes[2] = node->inputs[2]->shape;
  shapes[3] = op_logits_chunk(node);
  dtypes[0] = DTYPE_FLOAT32;
  for (int i = 1; i < 4; i++) dtypes[i] = node->inputs[1]->dtype;
  return 4;
}

static bool accepts_forward_backward(const struct node *node, bool output, int index, const int64_t *strides) {
  const struct value *value = output ? node->outputs[index] : node->inputs[index];
  return op_is_dense(value->shape, strides) || (index == 2 && op_logits_is_matrix(value->shape, strides));
}

static void reference_forward_backward(const struct node *node, const double *const *inputs, double *const *outputs) {
  const struct value *x = node->inputs[1], *weight = node->inputs[2];
  struct arena *arena = arena_new();
  int64_t rows = op_rows(x->shape);
  struct over_logits *parts = op_over_logits(arena, node, "cross_entropy", x, weight);
  parts->operands[0] = &parts->logits;
  parts->operands[1] = node->inputs[4];
  const double *logits =
      op_logits_multiply(arena, inputs[1], inputs[2], rows, op_columns(x->shape), op_logits_classes(weight));
  double scale, *lse = arena_alloc(arena, (size_t)rows * sizeof *lse);
  parts->node.kind->reference.evaluate(&parts->node, (const double *const[]){logits, inputs[4]},
                                       (double *const[]){outputs[0], lse, &scale});
  parts->node.kind = &kind_backward;
  parts->node.outputs = node->outputs + 1;
  parts->operands[1] = node->inputs[1];
  parts->operands[2] = node->inputs[2];
  reference_backward(&parts->node, (const double *const[]){inputs[0], inputs[1], inputs[2], lse, inputs[3], inputs[4]},
                     outputs + 1);
  arena_free(arena);
}

static double matmul_flops_forward_backward(const struct node *node) {
  return 3 * op_logits_matmul_flops(node->inputs[1], node->inputs[2]);
}

static int gemms_forward_backward(const struct node *node, struct op_gemm *gemms) {
  return op_logits_gemms(node, node->inputs[1], node->inputs[2], node->outputs[2], true, gemms);
}

static double flops_forward_backward(const struct node *node) {
  return matmul_flops_forward_backward(node) +
         7 * (double)op_rows(node->inputs[1]->shape) * (double)op_logits_classes(node->inputs[2]);
}

static int64_t index_limit_forward_backward(const struct node *node, int input) {
  return input == 4 ? op_logits_classes(node->inputs[2]) : 0;
}

static const struct op_kind kind_forward_backward = {
    .name = "linear_cross_entropy_forward_backward",
    .class = OP_KERNEL,
    .template_name = "linear_cross_entropy",
    .input_names = {"d_loss", "x", "weight", "scale", "targets"},
    .output_names = {"loss", "dx", "dweight", "logits"},
    .infer = infer_forward_backward,
    .layout.accepts = accepts_forward_backward,
    .memory.accumulates = 6,
    .memory.workspace = 8,
    .types.autocast = {AUTOCAST_FLOAT32, AUTOCAST_FLOAT32},
    .cost.flops = flops_forward_backward,
    .cost.matmul_flops = matmul_flops_forward_backward,
    .library.gemms = gemms_forward_backward,
    .kernel.noted_input = 1 + 4,
    .index.limit = index_limit_forward_backward,
    .index.ignores = true,
    .reference.evaluate = reference_forward_backward,
};

const struct op_file op_file_linear_cross_entropy = {
    .name = "linear_cross_entropy",
    .kinds = (const struct op_kind *const[]){&kind, &kind_backward, &kind_saved, &kind_saved_backward,
                                             &kind_inverse_count, &kind_forward_backward, NULL},
};
