/* cross_entropy over logits = x weight, of which `rows` rows at a time are in memory: the forward keeps lse alone, the
 * backward makes each chunk of logits again, and of it at once its part of dx and dweight (Wijmans et al.,
 * arXiv:2411.09009; Hsu et al., Liger Kernel, arXiv:2410.10989). x [..., C], weight [C, V]; dx = dlogits weight^T,
 * dweight = x^T dlogits, which adds up in its own type: the plan widens a parameter's. The last output is workspace for
 * a chunk, of x's type, in rows of `pitch` elements.
 *
 * Where all rows are in memory at once (`kept`), the logits stay there for the backward, which then makes of them, in
 * their memory, their gradient and its matmuls: what is left is that rows begin where a library wants them.
 *
 * As the loss is a mean whose gradient is known before any logit is, both can be computed from a chunk while it is in
 * memory: one node of the backward (`fused_loss_backward`) computes each chunk of logits once, and from it the loss and
 * the gradients (Hsu et al.). */
#include "gen/ops/support/support.h"

enum { N_ATTRIBUTES = 5, LOGITS = 6 };

static int64_t classes(const struct value *weight) {
  return weight->shape.dim[1];
}

static int infer_operands(struct arena *arena, const struct node *node, int x, int weight, int targets,
                          const char **error) {
  if (!op_check_float(arena, node, x, error) || !op_check_dtype(arena, node, weight, node->inputs[x]->dtype, error))
    return 0;
  if (!op_check_rank(arena, node, x, 1, error) || !op_check_dtype(arena, node, targets, DTYPE_INT32, error)) return 0;
  struct shape shape = node->inputs[x]->shape;
  struct shape wanted = shape_of(2, op_columns(shape), op_columns(node->inputs[weight]->shape));
  if (!op_check_shape(arena, node, weight, wanted, "a row for each column of x", error)) return 0;
  return op_check_shape(arena, node, targets, op_leading(shape), "one for each row of x", error);
}

static struct shape chunk(const struct node *node) {
  return shape_of(2, node_int(node, "rows"), node_int(node, "pitch"));
}

static int infer(struct arena *arena, const struct node *node, struct shape *shapes, enum dtype *dtypes,
                 const char **error) {
  if (!infer_operands(arena, node, 0, 1, 2, error)) return 0;
  shapes[0] = shapes[2] = (struct shape){0};
  shapes[1] = shape_of(1, op_rows(node->inputs[0]->shape));
  shapes[3] = chunk(node);
  for (int i = 0; i < 3; i++) dtypes[i] = DTYPE_FLOAT32;
  dtypes[3] = node->inputs[0]->dtype;
  return 4;
}

static const struct op_kind kind_kept, kind_forward_backward;
static bool is_kept(const struct op_kind *kind) {
  return kind == &kind_kept;
}

/* A matrix of the library of matmuls: one stride is 1, the other one skips at least a whole line. */
static bool is_matrix(struct shape shape, const int64_t *strides) {
  if (strides[0] < 1 || strides[1] < 1) return false;
  return (strides[1] == 1 && strides[0] >= shape.dim[1]) || (strides[0] == 1 && strides[1] >= shape.dim[0]);
}

static bool accepts(const struct node *node, bool output, int index, const int64_t *strides) {
  const struct value *value = output ? node->outputs[index] : node->inputs[index];
  return op_is_dense(value->shape, strides) || (!output && index == 1 && is_matrix(value->shape, strides));
}

/* ---- The truth: that of the two operations ---- */

struct parts {
  struct value logits;
  struct value *operands[5];
  struct node node;
};

/* The node of `kind` over logits that `node` stands for. */
static struct parts *over_logits(struct arena *arena, const struct node *node, const char *kind, const struct value *x,
                                 const struct value *weight) {
  struct parts *parts = arena_alloc(arena, sizeof *parts);
  parts->logits.shape = x->shape;
  parts->logits.shape.dim[x->shape.rank - 1] = classes(weight);
  parts->node = *node;
  parts->node.kind = op_kind_find(kind);
  parts->node.inputs = parts->operands;
  return parts;
}

static double *multiply(struct arena *arena, const double *x, const double *weight, int64_t rows, int64_t depth,
                        int64_t columns) {
  double *y = arena_alloc(arena, (size_t)(rows * columns) * sizeof *y);
  for (int64_t r = 0; r < rows; r++)
    for (int64_t d = 0; d < depth; d++)
      for (int64_t c = 0; c < columns; c++) y[r * columns + c] += x[r * depth + d] * weight[d * columns + c];
  return y;
}

/* dx = slopes weight^T and dweight = x^T slopes, into outputs[0] and [1]. */
static void add_up(const double *slopes, const double *x, const double *weight, int64_t rows, int64_t depth,
                   int64_t columns, double *const *outputs) {
  for (int64_t i = 0; i < rows * depth; i++) outputs[0][i] = 0;
  for (int64_t i = 0; i < depth * columns; i++) outputs[1][i] = 0;
  for (int64_t r = 0; r < rows; r++)
    for (int64_t d = 0; d < depth; d++)
      for (int64_t c = 0; c < columns; c++) {
        outputs[0][r * depth + d] += slopes[r * columns + c] * weight[d * columns + c];
        outputs[1][d * columns + c] += x[r * depth + d] * slopes[r * columns + c];
      }
}

static void clear_chunk(const struct value *workspace, double *elements) {
  for (int64_t i = 0; i < shape_count(workspace->shape); i++) elements[i] = 0;
}

/* Rows without gaps, into rows of the chunk's pitch. */
static void keep(const struct value *chunk, const double *logits, int64_t columns, double *elements) {
  int64_t pitch = op_columns(chunk->shape);
  clear_chunk(chunk, elements);
  for (int64_t i = 0; i < op_rows(chunk->shape) * columns; i++) elements[i / columns * pitch + i % columns] = logits[i];
}

static void reference(const struct node *node, const double *const *inputs, double *const *outputs) {
  const struct value *x = node->inputs[0], *weight = node->inputs[1];
  struct arena *arena = arena_new();
  struct parts *parts = over_logits(arena, node, "cross_entropy", x, weight);
  parts->operands[0] = &parts->logits;
  parts->operands[1] = node->inputs[2];
  const double *logits =
      multiply(arena, inputs[0], inputs[1], op_rows(x->shape), op_columns(x->shape), classes(weight));
  parts->node.kind->truth.reference(&parts->node, (const double *const[]){logits, inputs[2]}, outputs);
  if (is_kept(node->kind))
    keep(node->outputs[3], logits, classes(weight), outputs[3]);
  else
    clear_chunk(node->outputs[3], outputs[3]);
  arena_free(arena);
}

static void gradient(struct builder *builder, const struct node *node, struct value *const *dy, struct value **dx) {
  struct value *inputs[] = {dy[0],           node->inputs[0], node->inputs[1], node->outputs[1], node->outputs[2],
                            node->inputs[2], node->outputs[3]};
  bool kept = is_kept(node->kind);
  const char *name = kept ? "kept_cross_entropy_backward" : "linear_cross_entropy_backward";
  struct node *back = builder_node(builder, name, inputs, LOGITS + kept, node->attributes, N_ATTRIBUTES);
  if (back == NULL) return;
  for (int i = 0; i < 2; i++)
    if (builder_wants_gradient(builder, node->inputs[i])) dx[i] = back->outputs[i];
}

static struct node *inverse_count(struct builder *builder, const struct node *node) {
  const struct attribute attributes[] = {node->attributes[0], attribute_int("classes", classes(node->inputs[1]))};
  return builder_node(builder, "inverse_target_count", &node->inputs[2], 1, attributes, 2);
}

static double matmul_flops_of(const struct value *x, const struct value *weight) {
  return 2 * (double)shape_count(x->shape) * (double)classes(weight);
}

static double matmul_flops(const struct node *node) {
  return matmul_flops_of(node->inputs[0], node->inputs[1]);
}

static double flops(const struct node *node) {
  return matmul_flops(node) + 4 * (double)op_rows(node->inputs[0]->shape) * (double)classes(node->inputs[1]);
}

/* The matmuls over chunks of x's rows, where the last chunk has fewer than the others its own ones. */
static int gemms_of(const struct node *node, const struct value *x, const struct value *weight,
                    const struct value *dweight, bool makes_logits, struct op_gemm *gemms) {
  const int64_t all = op_rows(x->shape), rows = node_int(node, "rows"), last = all % rows;
  const int64_t depth = op_columns(x->shape), columns = classes(weight);
  const enum dtype type = x->dtype, sum = dweight != NULL ? dweight->dtype : type;
  int n = 0;
  if (makes_logits) gemms[n++] = (struct op_gemm){"logits", rows, depth, columns, type, type};
  if (makes_logits && last > 0) gemms[n++] = (struct op_gemm){"last_logits", last, depth, columns, type, type};
  if (dweight == NULL) return n;
  gemms[n++] = (struct op_gemm){"dx", rows, columns, depth, type, type};
  gemms[n++] = (struct op_gemm){"dweight", depth, rows, columns, type, sum};
  if (all > rows) gemms[n++] = (struct op_gemm){"next_dweight", depth, rows, columns, type, sum};
  if (last == 0) return n;
  gemms[n++] = (struct op_gemm){"last_dx", last, columns, depth, type, type};
  gemms[n++] = (struct op_gemm){"last_dweight", depth, last, columns, type, sum};
  return n;
}

static int gemms(const struct node *node, struct op_gemm *gemms) {
  return gemms_of(node, node->inputs[0], node->inputs[1], NULL, true, gemms);
}

static int64_t index_limit(const struct node *node, int input) {
  return input == 2 ? classes(node->inputs[1]) : 0;
}

#define FORWARD                                                                                                        \
  .class = OP_KERNEL, .template_name = "linear_cross_entropy", .input_names = {"x", "weight", "targets"},              \
  .output_names = {"loss", "lse", "scale", "logits"}, .infer = infer, .gradient = gradient, .layout.accepts = accepts, \
  .types.autocast = {AUTOCAST_FLOAT32, AUTOCAST_FLOAT32}, .cost.flops = flops, .cost.matmul_flops = matmul_flops,      \
  .library.gemms = gemms, .kernel.noted_input = 1 + 2, .index.limit = index_limit, .index.ignores = true,              \
  .evaluation.mean = op_mean_over_targets, .fusion.share = inverse_count, .truth.reference = reference

static const struct op_kind kind = {FORWARD, .name = "linear_cross_entropy", .memory.workspace = 8};
static const struct op_kind kind_kept = {FORWARD, .name = "kept_cross_entropy"};

/* ---- Backward ---- */

static int infer_backward(struct arena *arena, const struct node *node, struct shape *shapes, enum dtype *dtypes,
                          const char **error) {
  if (!op_check_shape(arena, node, 0, (struct shape){0}, "the gradient of a scalar", error)) return 0;
  if (!infer_operands(arena, node, 1, 2, 5, error)) return 0;
  shapes[0] = node->inputs[1]->shape;
  shapes[1] = node->inputs[2]->shape;
  shapes[2] = chunk(node);
  for (int i = 0; i < 3; i++) dtypes[i] = node->inputs[1]->dtype;
  return 3;
}

static bool accepts_backward(const struct node *node, bool output, int index, const int64_t *strides) {
  const struct value *value = output ? node->outputs[index] : node->inputs[index];
  return op_is_dense(value->shape, strides) || (index == (output ? 1 : 2) && is_matrix(value->shape, strides));
}

static void reference_backward(const struct node *node, const double *const *inputs, double *const *outputs) {
  const struct value *x = node->inputs[1], *weight = node->inputs[2];
  int64_t rows = op_rows(x->shape), depth = op_columns(x->shape), columns = classes(weight);
  struct arena *arena = arena_new();
  struct parts *parts = over_logits(arena, node, "cross_entropy_backward", x, weight);
  parts->operands[1] = &parts->logits;
  const double *logits = multiply(arena, inputs[1], inputs[2], rows, depth, columns);
  double *slopes = arena_alloc(arena, (size_t)(rows * columns) * sizeof *slopes);
  parts->node.kind->truth.reference(
      &parts->node, (const double *const[]){inputs[0], logits, inputs[3], inputs[4], inputs[5]}, &slopes);
  add_up(slopes, inputs[1], inputs[2], rows, depth, columns, outputs);
  clear_chunk(node->outputs[2], outputs[2]);
  arena_free(arena);
}

static double matmul_flops_backward(const struct node *node) {
  return (node->n_inputs > LOGITS ? 2 : 3) * matmul_flops_of(node->inputs[1], node->inputs[2]);
}

static int gemms_backward(const struct node *node, struct op_gemm *gemms) {
  return gemms_of(node, node->inputs[1], node->inputs[2], node->outputs[1], node->n_inputs == LOGITS, gemms);
}

static double flops_backward(const struct node *node) {
  return matmul_flops_backward(node) + 3 * (double)op_rows(node->inputs[1]->shape) * (double)classes(node->inputs[2]);
}

#define BACKWARD                                                                                                       \
  .class = OP_KERNEL, .template_name = "linear_cross_entropy", .infer = infer_backward,                                \
  .layout.accepts = accepts_backward, .memory.accumulates = 3, .memory.workspace = 4,                                  \
  .types.autocast = {AUTOCAST_FLOAT32, AUTOCAST_FLOAT32}, .cost.flops = flops_backward,                                \
  .cost.matmul_flops = matmul_flops_backward, .library.gemms = gemms_backward, .truth.reference = reference_backward

static const struct op_kind kind_backward = {BACKWARD, .name = "linear_cross_entropy_backward",
                                             .input_names = {"d_loss", "x", "weight", "lse", "scale", "targets"},
                                             .output_names = {"dx", "dweight", "logits"}};
static const struct op_kind kind_kept_backward = {
    BACKWARD, .name = "kept_cross_entropy_backward",
    .input_names = {"d_loss", "x", "weight", "lse", "scale", "targets", "kept"},
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
    .truth.reference = reference_inverse_count,
};

static int infer_forward_backward(struct arena *arena, const struct node *node, struct shape *shapes,
                                  enum dtype *dtypes, const char **error) {
  if (!op_check_shape(arena, node, 0, (struct shape){0}, "the gradient of a scalar", error)) return 0;
  if (!infer_operands(arena, node, 1, 2, 4, error)) return 0;
  shapes[0] = (struct shape){0};
  shapes[1] = node->inputs[1]->shape;
  shapes[2] = node->inputs[2]->shape;
  shapes[3] = chunk(node);
  dtypes[0] = DTYPE_FLOAT32;
  for (int i = 1; i < 4; i++) dtypes[i] = node->inputs[1]->dtype;
  return 4;
}

static bool accepts_forward_backward(const struct node *node, bool output, int index, const int64_t *strides) {
  const struct value *value = output ? node->outputs[index] : node->inputs[index];
  return op_is_dense(value->shape, strides) || (index == 2 && is_matrix(value->shape, strides));
}

static void reference_forward_backward(const struct node *node, const double *const *inputs, double *const *outputs) {
  const struct value *x = node->inputs[1], *weight = node->inputs[2];
  struct arena *arena = arena_new();
  int64_t rows = op_rows(x->shape);
  struct parts *parts = over_logits(arena, node, "cross_entropy", x, weight);
  parts->operands[0] = &parts->logits;
  parts->operands[1] = node->inputs[4];
  const double *logits = multiply(arena, inputs[1], inputs[2], rows, op_columns(x->shape), classes(weight));
  double scale, *lse = arena_alloc(arena, (size_t)rows * sizeof *lse);
  parts->node.kind->truth.reference(&parts->node, (const double *const[]){logits, inputs[4]},
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
  return 3 * matmul_flops_of(node->inputs[1], node->inputs[2]);
}

static int gemms_forward_backward(const struct node *node, struct op_gemm *gemms) {
  return gemms_of(node, node->inputs[1], node->inputs[2], node->outputs[2], true, gemms);
}

static double flops_forward_backward(const struct node *node) {
  return matmul_flops_forward_backward(node) +
         7 * (double)op_rows(node->inputs[1]->shape) * (double)classes(node->inputs[2]);
}

static int64_t index_limit_forward_backward(const struct node *node, int input) {
  return input == 4 ? classes(node->inputs[2]) : 0;
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
    .truth.reference = reference_forward_backward,
};

/* ---- Of the classes that a rank has (gen/ops/cross_entropy_part.c) ---- */

static struct shape rows_shape(const struct value *x) {
  return shape_of(2, (int64_t)1, op_rows(x->shape));
}

static int infer_part(struct arena *arena, const struct node *node, struct shape *shapes, enum dtype *dtypes,
                      const char **error) {
  if (!infer_operands(arena, node, 0, 1, 2, error)) return 0;
  shapes[0] = shapes[1] = rows_shape(node->inputs[0]);
  shapes[2] = chunk(node);
  dtypes[0] = dtypes[1] = DTYPE_FLOAT32;
  dtypes[2] = node->inputs[0]->dtype;
  return 3;
}

static void reference_part(const struct node *node, const double *const *inputs, double *const *outputs) {
  const struct value *x = node->inputs[0], *weight = node->inputs[1];
  struct arena *arena = arena_new();
  struct parts *parts = over_logits(arena, node, "cross_entropy_part", x, weight);
  parts->operands[0] = &parts->logits;
  parts->node.n_inputs--;
  const double *logits =
      multiply(arena, inputs[0], inputs[1], op_rows(x->shape), op_columns(x->shape), classes(weight));
  parts->node.kind->truth.reference(
      &parts->node, (const double *const[]){logits, inputs[2], node->n_inputs > 3 ? inputs[3] : NULL}, outputs);
  clear_chunk(node->outputs[2], outputs[2]);
  arena_free(arena);
}

static void gradient_part(struct builder *builder, const struct node *node, struct value *const *dy,
                          struct value **dx) {
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

static const struct op_kind kind_part = {
    .name = "linear_cross_entropy_part",
    .class = OP_KERNEL,
    .template_name = "linear_cross_entropy_part",
    .input_names = {"x", "weight", "own", "columns"},
    .output_names = {"lse", "linear", "logits"},
    .infer = infer_part,
    .gradient = gradient_part,
    .layout.accepts = accepts,
    .memory.workspace = 4,
    .types.autocast = {AUTOCAST_FLOAT32, AUTOCAST_FLOAT32},
    .cost.flops = flops,
    .cost.matmul_flops = matmul_flops,
    .library.gemms = gemms,
    .index.limit = index_limit,
    .index.ignores = true,
    .truth.reference = reference_part,
};

static int infer_part_backward(struct arena *arena, const struct node *node, struct shape *shapes, enum dtype *dtypes,
                               const char **error) {
  for (int i = 0; i < 2; i++)
    if (!op_check_shape(arena, node, i, rows_shape(node->inputs[2]), "one for each row of x", error)) return 0;
  if (!infer_operands(arena, node, 2, 3, 5, error)) return 0;
  shapes[0] = node->inputs[2]->shape;
  shapes[1] = node->inputs[3]->shape;
  shapes[2] = chunk(node);
  for (int i = 0; i < 3; i++) dtypes[i] = node->inputs[2]->dtype;
  return 3;
}

static bool accepts_part_backward(const struct node *node, bool output, int index, const int64_t *strides) {
  const struct value *value = output ? node->outputs[index] : node->inputs[index];
  return op_is_dense(value->shape, strides) || (index == (output ? 1 : 3) && is_matrix(value->shape, strides));
}

static void reference_part_backward(const struct node *node, const double *const *inputs, double *const *outputs) {
  const struct value *x = node->inputs[2], *weight = node->inputs[3];
  struct arena *arena = arena_new();
  struct parts *parts = over_logits(arena, node, "cross_entropy_part_backward", x, weight);
  int64_t rows = op_rows(x->shape), depth = op_columns(x->shape), columns = classes(weight);
  parts->operands[2] = &parts->logits;
  parts->node.n_inputs--;
  const double *logits = multiply(arena, inputs[2], inputs[3], rows, depth, columns);
  double *slopes = arena_alloc(arena, (size_t)(rows * columns) * sizeof *slopes);
  parts->node.kind->truth.reference(&parts->node,
                                    (const double *const[]){inputs[0], inputs[1], logits, inputs[4], inputs[5],
                                                            node->n_inputs > 6 ? inputs[6] : NULL},
                                    &slopes);
  add_up(slopes, inputs[2], inputs[3], rows, depth, columns, outputs);
  clear_chunk(node->outputs[2], outputs[2]);
  arena_free(arena);
}

static double matmul_flops_part_backward(const struct node *node) {
  return 3 * matmul_flops_of(node->inputs[2], node->inputs[3]);
}

static double flops_part_backward(const struct node *node) {
  return matmul_flops_part_backward(node) +
         3 * (double)op_rows(node->inputs[2]->shape) * (double)classes(node->inputs[3]);
}

static int gemms_part_backward(const struct node *node, struct op_gemm *gemms) {
  return gemms_of(node, node->inputs[2], node->inputs[3], node->outputs[1], true, gemms);
}

static int64_t index_limit_part_backward(const struct node *node, int input) {
  return input == 5 ? classes(node->inputs[3]) : 0;
}

static const struct op_kind kind_part_backward = {
    .name = "linear_cross_entropy_part_backward",
    .class = OP_KERNEL,
    .template_name = "linear_cross_entropy_part",
    .input_names = {"d_lse", "d_linear", "x", "weight", "lse", "own", "columns"},
    .output_names = {"dx", "dweight", "logits"},
    .infer = infer_part_backward,
    .layout.accepts = accepts_part_backward,
    .memory.accumulates = 3,
    .memory.workspace = 4,
    .types.autocast = {AUTOCAST_FLOAT32, AUTOCAST_FLOAT32},
    .cost.flops = flops_part_backward,
    .cost.matmul_flops = matmul_flops_part_backward,
    .library.gemms = gemms_part_backward,
    .index.limit = index_limit_part_backward,
    .index.ignores = true,
    .truth.reference = reference_part_backward,
};

const struct op_file op_file_linear_cross_entropy = {
    .name = "linear_cross_entropy",
    .kinds =
        (const struct op_kind *const[]){&kind, &kind_backward, &kind_kept, &kind_kept_backward, &kind_inverse_count,
                                        &kind_forward_backward, &kind_part, &kind_part_backward, NULL},
};
