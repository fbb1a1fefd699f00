/* y[...][:] = weight[tokens[...]][:]; dweight[v] = the sum of dy over the positions whose token is v, whose own
 * gradient is the rows again. */
#include <string.h>

#include "gen/onnx/onnx.h"
#include "gen/ops/support/support.h"
#include "gen/stablehlo/stablehlo.h"

/* tokens' shape with a dimension of `width` after it. */
static bool widened(struct shape tokens, int64_t width, struct shape *shape) {
  *shape = tokens;
  if (tokens.rank == MAX_RANK) return false;
  shape->dim[shape->rank++] = width;
  return true;
}

static int infer(struct arena *arena, const struct node *node, struct shape *shapes, enum dtype *dtypes,
                 const char **error) {
  if (!op_check_float(arena, node, 0, error)) return 0;
  if (!op_check_dtype(arena, node, 1, DTYPE_INT32, error)) return 0;
  struct shape weight = node->inputs[0]->shape, shape;
  if (weight.rank != 2 || !widened(node->inputs[1]->shape, weight.dim[1], &shape))
    return op_fail(arena, node, error, "%s must have 2 dimensions and %s at most %d", op_operand_text(arena, node, 0),
                   op_operand_text(arena, node, 1), MAX_RANK - 1);
  return op_result(shapes, dtypes, shape, node->inputs[0]->dtype);
}

static void reference(const struct node *node, const double *const *inputs, double *const *outputs) {
  int64_t width = node->inputs[0]->shape.dim[1], rows = shape_count(node->inputs[1]->shape);
  for (int64_t r = 0; r < rows; r++)
    memcpy(outputs[0] + r * width, inputs[0] + (int64_t)inputs[1][r] * width, (size_t)width * sizeof(double));
}

static void gradient(struct builder *builder, const struct node *node, struct value *const *dy, struct value **dx) {
  struct attribute rows = attribute_int("rows", node->inputs[0]->shape.dim[0]);
  dx[0] = builder_op(builder, "embedding_backward", (struct value *[]){dy[0], node->inputs[1]}, 2, &rows, 1);
}

static int64_t index_limit(const struct node *node, int input) {
  return input == 1 ? node->inputs[0]->shape.dim[0] : 0;
}

/* Each token has its row. */
static int along(const struct node *node, int axis, int input) {
  if (input == 0) return AXIS_WHOLE;
  return axis < node->inputs[1]->shape.rank ? axis : AXIS_MIXED;
}

/* Rows of positions, sorted by the numbers that another operation gives. */
static struct value *incremental(struct builder *builder, const struct node *node, struct new_positions *new) {
  (void)node;
  struct timeline rows = new->timelines[0], index = new->timelines[1];
  if (rows.axis != 0 || rows.before > 0 || rows.order != NULL || index.axis != AXIS_SORTED || index.more < 0)
    return NULL;
  new->timeline = (struct timeline){.axis = 0, .more = index.more, .order = index.order};
  return builder_binary(builder, "embedding", new->inputs[0], new->inputs[1]);
}

/* ---- A part of the rows on each rank ---- */

/* Rows of the weight: a rank looks up its own and gives zeros for all others (Shoeybi et al., "Megatron-LM",
 * arXiv:1909.08053, section 3). Positions: as always. */
static bool place(const struct node *node, int seed, int64_t ranks, struct placement *placements) {
  bool even = placement_fits(placements[seed], op_operand(node, seed)->shape, ranks);
  if (seed != 0) return even && op_place_along(node, seed, placements);
  if (placements[0].dim != 0 || placements[0].blocks != 1) return false;
  placements[1] = (struct placement){.form = PLACED_WHOLE};
  placements[2] = (struct placement){.form = PLACED_PARTIAL};
  return true;
}

/* Whether an index numbers so many rows. */
static bool numbers(const struct value *index, int64_t rows) {
  const struct node *producer = index->producer;
  int64_t low, high;
  if (producer == NULL || producer->kind->index.range == NULL) return false;
  producer->kind->index.range(producer, -1, &low, &high);
  return high + 1 == rows;
}

/* Rows of a rank's part of a table, by an index that it has sorted. */
static bool place_sorted(const struct node *node, int seed, struct placement *placements) {
  if (seed != 1 || placements[1].dim != 0 || !numbers(node->inputs[1], node->inputs[0]->shape.dim[0])) return false;
  placements[0] = placement_split(0, placements[1].blocks);
  placements[2] = placements[1];
  return true;
}

/* Whether an index is a part of what is read from data, or that. */
static bool is_read(const struct value *index) {
  const struct value *value = viewed_value(index);
  if (value->producer != NULL && value->producer->kind->index.moves) return is_read(value->producer->inputs[0]);
  return value->kind == VALUE_INPUT;
}

/* Rows for what is read from data, such as a vocabulary. A table of fewer rows than columns is small compared with its
 * sums over ranks. */
static bool tried(const struct node *node, int *input, int *dim) {
  const struct value *weight = node->inputs[0];
  *input = *dim = 0;
  return viewed_value(weight)->kind == VALUE_PARAMETER && is_read(node->inputs[1]) &&
         weight->shape.dim[0] > weight->shape.dim[1];
}

static struct node *over_parts(struct builder *builder, const struct node *node, int64_t whole, int64_t ranks,
                               int64_t axis) {
  (void)ranks;
  struct value *own = op_own_index(builder, node->inputs[1], node->inputs[0]->shape.dim[0], whole, axis, -1);
  struct attribute none = attribute_int("ignore", -1);
  return builder_node(builder, "embedding_part", (struct value *[]){node->inputs[0], own}, 2, &none, 1);
}

static void reference_part(const struct node *node, const double *const *inputs, double *const *outputs) {
  int64_t width = node->inputs[0]->shape.dim[1], rows = shape_count(node->inputs[1]->shape);
  for (int64_t r = 0; r < rows; r++)
    for (int64_t c = 0; c < width; c++)
      outputs[0][r * width + c] = inputs[1][r] < 0 ? 0 : inputs[0][(int64_t)inputs[1][r] * width + c];
}

static void gradient_part(struct builder *builder, const struct node *node, struct value *const *dy,
                          struct value **dx) {
  struct attribute attributes[] = {attribute_int("rows", node->inputs[0]->shape.dim[0]), attribute_int("ignore", -1)};
  struct value *inputs[] = {dy[0], node->inputs[1]};
  dx[0] = builder_op(builder, "embedding_part_backward", inputs, 2, attributes, 2);
}

/* Tokens that are -1 have no row here. */
static const struct op_kind kind_part = {
    .name = "embedding_part",
    .template_name = "embedding",
    .class = OP_KERNEL,
    .input_names = {"weight", "tokens"},
    .output_names = {"y"},
    .infer = infer,
    .sequence.along = along,
    .gradient = gradient_part,
    .cost.flops = op_flops_none,
    .index.limit = index_limit,
    .index.ignores = true,
    .reference.evaluate = reference_part,
};

static const struct op_kind kind_plus;
static void lower(struct stablehlo *hlo) {
  hlo_result(hlo, 0, hlo_rows(hlo, hlo_raw_input(hlo, 0), hlo_raw_input(hlo, 1)));
}

static const struct op_kind kind = {
    .name = "embedding",
    .lower.write = lower,
    .onnx.operator= "Gather",
    .class = OP_KERNEL,
    .input_names = {"weight", "tokens"},
    .output_names = {"y"},
    .infer = infer,
    .sequence.along = along,
    .sequence.incremental = incremental,
    .gradient = gradient,
    .cost.flops = op_flops_none,
    .index.limit = index_limit,
    .ranks.place = place,
    .ranks.place_sorted = place_sorted,
    .ranks.pads = true, /* rows */
    .ranks.tried = tried,
    .ranks.over_parts = over_parts,
    .reference.evaluate = reference,
};

/* ---- Rows to which others are added, such as those of their positions ---- */

static int infer_plus(struct arena *arena, const struct node *node, struct shape *shapes, enum dtype *dtypes,
                      const char **error) {
  if (infer(arena, node, shapes, dtypes, error) == 0) return 0;
  struct shape whole = shapes[0], added = node->inputs[2]->shape;
  bool ends = added.rank <= whole.rank;
  for (int i = 1; ends && i <= added.rank; i++) ends = added.dim[added.rank - i] == whole.dim[whole.rank - i];
  if (!ends) return op_fail(arena, node, error, "%s has other last dimensions", op_operand_text(arena, node, 2));
  return 1;
}

static void reference_plus(const struct node *node, const double *const *inputs, double *const *outputs) {
  int64_t added = shape_count(node->inputs[2]->shape);
  reference(node, inputs, outputs);
  for (int64_t i = 0; i < shape_count(node->outputs[0]->shape); i++) outputs[0][i] += inputs[2][i % added];
}

static const struct op_kind kind_plus = {
    .name = "embedding_plus",
    .class = OP_KERNEL,
    .template_name = "embedding",
    .input_names = {"weight", "tokens", "added"},
    .output_names = {"y"},
    .infer = infer_plus,
    .index.limit = index_limit,
    .reference.evaluate = reference_plus,
};

/* ---- Backward ---- */

static int infer_backward(struct arena *arena, const struct node *node, struct shape *shapes, enum dtype *dtypes,
                          const char **error) {
  if (!op_check_dtype(arena, node, 1, DTYPE_INT32, error)) return 0;
  struct shape dy = node->inputs[0]->shape, shape;
  if (!widened(node->inputs[1]->shape, op_columns(dy), &shape) || !shape_equal(shape, dy))
    return op_fail(arena, node, error, "%s and %s differ before the last dimension", op_operand_text(arena, node, 0),
                   op_operand_text(arena, node, 1));
  return op_result(shapes, dtypes, shape_of(2, node_int(node, "rows"), op_columns(dy)), node->inputs[0]->dtype);
}

static void reference_backward(const struct node *node, const double *const *inputs, double *const *outputs) {
  int64_t width = op_columns(node->inputs[0]->shape), rows = op_rows(node->inputs[0]->shape);
  memset(outputs[0], 0, (size_t)shape_count(node->outputs[0]->shape) * sizeof(double));
  for (int64_t r = 0; r < rows; r++)
    for (int64_t c = 0; c < width; c++) outputs[0][(int64_t)inputs[1][r] * width + c] += inputs[0][r * width + c];
}

static void gradient_backward(struct builder *builder, const struct node *node, struct value *const *dy,
                              struct value **dx) {
  dx[0] = builder_binary(builder, "embedding", dy[0], node->inputs[1]);
}

static int64_t index_limit_backward(const struct node *node, int input) {
  return input == 1 ? node_int(node, "rows") : 0;
}

/* Sorted rows go back to their positions. */
static struct value *incremental_backward(struct builder *builder, const struct node *node, struct new_positions *new) {
  struct timeline sorted = new->timelines[0], index = new->timelines[1];
  bool fits = sorted.axis == 0 && index.axis == AXIS_SORTED && sorted.order == index.order && sorted.more == index.more;
  if (!fits || sorted.before > 0 || node_int(node, "rows") % new->most != 0) return NULL;
  int64_t each = node_int(node, "rows") / new->most;
  struct attribute rows = attribute_int("rows", new->width *each);
  new->timeline = (struct timeline){.axis = 0, .more = (int)each - 1};
  return builder_op(builder, "embedding_backward", new->inputs, 2, &rows, 1);
}

/* Rows that a rank has sorted, in its part of what they add up to. */
static bool place_sorted_backward(const struct node *node, int seed, struct placement *placements) {
  if (placements[seed].dim != 0 || !numbers(node->inputs[1], node_int(node, "rows"))) return false;
  placements[0] = placements[1] = placements[seed];
  placements[2] = placement_split(0, placements[seed].blocks);
  return true;
}

static void shorten_backward(struct node *node, const struct placement *placements, int64_t ranks) {
  for (int i = 0; i < node->n_attributes && placements[2].form == PLACED_SPLIT; i++)
    if (strcmp(node->attributes[i].name, "rows") == 0) node->attributes[i].integer /= ranks;
}

/* It is also a function of accel/model.h that adds rows. */
static void write_backward(struct onnx *onnx) {
  const struct onnx_extent shape[] = {onnx_int_extent(onnx, "rows"), onnx_dim(onnx, 0, -1)};
  const struct onnx_extent column[] = {onnx_fixed(-1), onnx_fixed(1)}, rows[] = {onnx_fixed(-1), shape[1]};
  const char *zeros = onnx_binary(onnx, "Expand", onnx_float(onnx, 0), onnx_shape(onnx, shape, 2));
  const char *index = onnx_reshape(onnx, onnx_cast(onnx, onnx_input(onnx, 1), DTYPE_INT64), column, 2);
  onnx_result(onnx, 0, onnx_add_rows(onnx, zeros, index, onnx_reshape(onnx, onnx_input(onnx, 0), rows, 2)));
}

static void lower_backward(struct stablehlo *hlo) {
  hlo_result(hlo, 0, hlo_add_rows(hlo, node_int(hlo_node(hlo), "rows"), hlo_raw_input(hlo, 1), hlo_input(hlo, 0)));
}

static const struct op_kind kind_backward = {
    .name = "embedding_backward",
    .lower.write = lower_backward,
    .onnx.write = write_backward,
    .class = OP_KERNEL,
    .template_name = "embedding",
    .input_names = {"dy", "tokens"},
    .output_names = {"dweight"},
    .infer = infer_backward,
    .sequence.incremental = incremental_backward,
    .gradient = gradient_backward,
    .memory.accumulates = 1,
    .cost.flops_each = 1,
    .index.limit = index_limit_backward,
    .ranks.place_sorted = place_sorted_backward,
    .ranks.shorten = shorten_backward,
    .reference.evaluate = reference_backward,
};

static void reference_part_backward(const struct node *node, const double *const *inputs, double *const *outputs) {
  int64_t width = op_columns(node->inputs[0]->shape), rows = op_rows(node->inputs[0]->shape);
  memset(outputs[0], 0, (size_t)shape_count(node->outputs[0]->shape) * sizeof(double));
  for (int64_t r = 0; r < rows; r++)
    for (int64_t c = 0; c < width && inputs[1][r] >= 0; c++)
      outputs[0][(int64_t)inputs[1][r] * width + c] += inputs[0][r * width + c];
}

static const struct op_kind kind_part_backward = {
    .name = "embedding_part_backward",
    .class = OP_KERNEL,
    .template_name = "embedding",
    .input_names = {"dy", "tokens"},
    .output_names = {"dweight"},
    .infer = infer_backward,
    .memory.accumulates = 1,
    .cost.flops_each = 1,
    .index.limit = index_limit_backward,
    .index.ignores = true,
    .reference.evaluate = reference_part_backward,
};

/* embedding(scope, tokens, vocab, width); the weight starts normal with deviation 1, as torch.nn.Embedding. */
static struct value *build(struct builder *builder, const struct argument *arguments, int count) {
  (void)count;
  int64_t vocab = arguments[2].integer, width = arguments[3].integer;
  if (vocab < 1 || width < 1) {
    builder_error(builder, "embedding: vocabulary %lld and width %lld must be at least 1", (long long)vocab,
                  (long long)width);
    return NULL;
  }
  struct value *weight = builder_parameter(builder, arguments[0].scope, "weight", shape_of(2, vocab, width),
                                           (struct initializer){INIT_NORMAL, 0, 1});
  return builder_binary(builder, "embedding", weight, op_tensor(arguments, 1));
}

/* index_add(x, index, rows) */
static struct value *build_index_add(struct builder *builder, const struct argument *arguments, int count) {
  (void)count;
  struct value *inputs[] = {op_tensor(arguments, 0), op_tensor(arguments, 1)};
  struct attribute rows = attribute_int("rows", arguments[2].integer);
  if (rows.integer >= 1) return builder_op(builder, "embedding_backward", inputs, 2, &rows, 1);
  builder_error(builder, "index_add: the number of rows must be at least 1, not %lld", (long long)rows.integer);
  return NULL;
}

const struct op_file op_file_embedding = {
    .name = "embedding",
    .kinds = (const struct op_kind *const[]){&kind, &kind_plus, &kind_backward, &kind_part, &kind_part_backward, NULL},
    .functions =
        (const struct op_function[]){
            {"embedding", .build = build}, {"take", .kind = &kind}, {"index_add", .build = build_index_add}, {0}},
};
