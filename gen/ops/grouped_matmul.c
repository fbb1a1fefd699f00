/* Matmuls of groups of rows: rows starts[g] to starts[g + 1] of x times the transpose of weight g, or where `straight`
 * times the weight itself; rows after the last group give 0. dx is the same of dy with the weights the other way
 * round; the gradient of weight g is the matmul of the group's rows of dy, transposed, and of x, in float32, of many
 * groups in one node. On processors autocast leaves them in float32: the extents of a matmul are known as it runs, and
 * the library makes its matmuls of 16 bits before. */
#include <string.h>

#include "gen/onnx/onnx.h"
#include "gen/ops/support/support.h"
#include "gen/stablehlo/stablehlo.h"

enum { FIRST = 2 }; /* weight 0 among the inputs */

static int groups_of(const struct node *node) {
  return node->n_inputs - FIRST;
}

static int infer(struct arena *arena, const struct node *node, struct shape *shapes, enum dtype *dtypes,
                 const char **error) {
  bool straight = node_int(node, "straight") != 0;
  struct shape x = node->inputs[0]->shape, weight = node->inputs[FIRST]->shape;
  if (!op_check_float(arena, node, 0, error) || !op_check_dtype(arena, node, 1, DTYPE_INT32, error)) return 0;
  if (x.rank != 2 || weight.rank != 2 || weight.dim[!straight] != x.dim[1])
    return op_fail(arena, node, error, "%s must be [rows][columns], and a weight %s", op_operand_text(arena, node, 0),
                   straight ? "[columns][out]" : "[out][columns]");
  for (int i = FIRST; i < node->n_inputs; i++)
    if (!op_check_dtype(arena, node, i, node->inputs[0]->dtype, error) ||
        !op_check_shape(arena, node, i, weight, "as the first weight", error))
      return 0;
  if (!op_check_shape(arena, node, 1, shape_of(1, (int64_t)groups_of(node) + 1), "where each group starts", error))
    return 0;
  return op_result(shapes, dtypes, op_with_extent(x, 1, weight.dim[straight]), node->inputs[0]->dtype);
}

static void reference(const struct node *node, const double *const *inputs, double *const *outputs) {
  bool straight = node_int(node, "straight") != 0;
  int64_t k = op_columns(node->inputs[0]->shape), n = op_columns(node->outputs[0]->shape);
  memset(outputs[0], 0, (size_t)shape_count(node->outputs[0]->shape) * sizeof(double));
  for (int g = 0; g < groups_of(node); g++)
    for (int64_t r = (int64_t)inputs[1][g]; r < (int64_t)inputs[1][g + 1]; r++)
      for (int64_t i = 0; i < n * k; i++) {
        int64_t out = straight ? i % n : i / k, in = straight ? i / n : i % k;
        outputs[0][r * n + out] += inputs[0][r * k + in] * inputs[FIRST + g][i];
      }
}

/* After the last weight from input `first` on of which one node makes the gradients: all are wanted, and none comes
 * twice, as both parts of its gradient would be written at once. */
static int end_of_run(struct builder *builder, const struct node *node, int first) {
  int end = first;
  for (; end < node->n_inputs && builder_wants_gradient(builder, node->inputs[end]); end++)
    for (int i = first; i < end; i++)
      if (node->inputs[i] == node->inputs[end]) return end;
  return end;
}

static void gradient(struct builder *builder, const struct node *node, struct value *const *dy, struct value **dx) {
  bool straight = node_int(node, "straight") != 0;
  struct value *x = node->inputs[0], *starts = node->inputs[1];
  struct value **inputs = arena_alloc(builder_arena(builder), (size_t)node->n_inputs * sizeof *inputs);
  for (int i = 1; i < node->n_inputs; i++) inputs[i] = node->inputs[i];
  inputs[0] = dy[0];
  struct attribute other = attribute_int("straight", !straight);
  if (builder_wants_gradient(builder, x))
    dx[0] = builder_op(builder, "grouped_matmul", inputs, node->n_inputs, &other, 1);
  for (int i = FIRST, end; i < node->n_inputs; i = end) {
    end = end_of_run(builder, node, i);
    if (end == i) {
      end++;
      continue;
    }
    bool all = end - i == groups_of(node);
    struct value *own = all ? starts : op_slice(builder, starts, 0, i - FIRST, end - i + 1);
    struct value *operands[] = {straight ? x : dy[0], straight ? dy[0] : x, own};
    const struct node *made = builder_node(builder, "grouped_matmul_weight", operands, 3, NULL, 0);
    for (int g = i; g < end && made != NULL; g++) dx[g] = made->outputs[g - i];
  }
}

/* Of all rows, as many as there can be. */
static double flops(const struct node *node) {
  return 2 * (double)shape_count(node->outputs[0]->shape) * (double)op_columns(node->inputs[0]->shape);
}

static int64_t index_limit(const struct node *node, int input) {
  return input == 1 ? node->inputs[0]->shape.dim[0] + 1 : 0;
}

/* Rows of positions that the groups sort. */
static struct value *incremental(struct builder *builder, const struct node *node, struct new_positions *new) {
  struct timeline rows = new->timelines[0], starts = new->timelines[1];
  if (rows.axis != 0 || starts.axis != AXIS_SORTED || starts.more >= 0 || rows.order != starts.order) return NULL;
  for (int i = FIRST; i < node->n_inputs; i++)
    if (new->timelines[i].axis != AXIS_WHOLE) return NULL;
  new->timeline = rows;
  return builder_op(builder, "grouped_matmul", new->inputs, node->n_inputs, node->attributes, node->n_attributes);
}

/* Rows of a rank, sorted by group, with the weights of all groups. */
static bool place_sorted(const struct node *node, int seed, struct placement *placements) {
  const struct placement sorted = placements[seed];
  if (seed >= FIRST || sorted.dim != (seed == 0 ? 0 : -1)) return false;
  for (int i = FIRST; i < node->n_inputs; i++) placements[i] = (struct placement){.form = PLACED_WHOLE};
  placements[0] = placements[node->n_inputs] = placement_along(sorted, 0);
  placements[1] = placement_along(sorted, -1);
  return true;
}

/* Zeros for the rows after the last group, which begin at row `last` and may be none. */
static const char *rest_onnx(struct onnx *onnx, const char *last) {
  const struct onnx_extent rows = onnx_dim(onnx, 0, 0), columns = onnx_result_dim(onnx, 1);
  const struct attribute axis = attribute_int("axis", 0);
  const char *count = onnx_binary(onnx, "Sub", onnx_shape(onnx, &rows, 1), last);
  const char *extents[] = {count, onnx_shape(onnx, &columns, 1)};
  return onnx_binary(onnx, "Expand", onnx_float(onnx, 0), onnx_op(onnx, "Concat", extents, 2, &axis, 1));
}

/* The rows of each group, which may be none, times its weight. */
static void write_onnx(struct onnx *onnx) {
  const bool straight = onnx_int(onnx, "straight") != 0;
  const int groups = onnx_n_inputs(onnx) - FIRST;
  const char **parts = arena_alloc(onnx_arena(onnx), ((size_t)groups + 1) * sizeof *parts);
  const char *starts = onnx_cast(onnx, onnx_input(onnx, 1), DTYPE_INT64);
  const struct onnx_extent rows = onnx_fixed(0);
  const struct attribute axis = attribute_int("axis", 0);
  for (int g = 0; g < groups; g++) {
    const char *start = onnx_slice(onnx, starts, 0, onnx_fixed(g), onnx_fixed(g + 1));
    const char *end = onnx_slice(onnx, starts, 0, onnx_fixed(g + 1), onnx_fixed(g + 2));
    const char *inputs[] = {onnx_input(onnx, 0), start, end, onnx_shape(onnx, &rows, 1)};
    const char *x = onnx_op(onnx, "Slice", inputs, 4, NULL, 0), *weight = onnx_input(onnx, FIRST + g);
    parts[g] = onnx_binary(onnx, "MatMul", x, straight ? weight : onnx_exchange(onnx, weight, 2, 0, 1));
  }
  parts[groups] = rest_onnx(onnx, onnx_slice(onnx, starts, 0, onnx_fixed(groups), onnx_fixed(groups + 1)));
  onnx_result(onnx, 0, onnx_op(onnx, "Concat", parts, groups + 1, &axis, 1));
}

/* ---- StableHLO: blocks of rows of one group ---- */

enum { BLOCK = 64 };

/* How many rows a block has at most. */
static int64_t lower_size(const struct stablehlo *hlo) {
  const int64_t rows = hlo_node(hlo)->inputs[0]->shape.dim[0];
  return rows < BLOCK ? rows : BLOCK;
}

/* Which rows a block has: that of its first row and how many there are, and its group; each [blocks], int32. */
struct lowered_blocks {
  int64_t rows, count;
  struct hlo first, valid, group;
};

/* 0 and sums so far: [n + 1] of [n]. */
static struct hlo lower_sums_so_far(struct stablehlo *hlo, struct hlo x) {
  const int64_t n = x.shape.dim[0];
  const struct shape square = shape_of(2, n + 1, n);
  const struct hlo before =
      hlo_compare(hlo, "LT", hlo_iota(hlo, square, 1, HLO_I32), hlo_iota(hlo, square, 0, HLO_I32));
  return hlo_reduce(hlo, "add", hlo_select(hlo, before, x, hlo_number(0)), shape_of(1, INT64_C(1)), false);
}

/* Each group begins a block of its own. What is left over of `count`, the most that there can be, has no rows. */
static struct lowered_blocks lower_blocks(struct stablehlo *hlo, struct hlo starts) {
  const int64_t groups = starts.shape.dim[0] - 1, size = lower_size(hlo);
  const int64_t rows = hlo_node(hlo)->inputs[0]->shape.dim[0];
  struct lowered_blocks blocks = {.rows = size, .count = rows / size + groups};
  const struct shape all = shape_of(2, blocks.count, groups);
  const struct hlo from = hlo_slice(hlo, starts, 0, 0, groups), to = hlo_slice(hlo, starts, 0, 1, groups);
  const struct hlo own = hlo_sub(hlo, to, from), of_size = hlo_number((double)size);
  const struct hlo many = hlo_binary(hlo, "divide", hlo_add(hlo, own, hlo_number((double)size - 1)), of_size);
  const struct hlo sums = lower_sums_so_far(hlo, many), number = hlo_iota(hlo, all, 0, HLO_I32);
  const struct hlo ended = hlo_compare(hlo, "LE", hlo_slice(hlo, sums, 0, 1, groups), number);
  const struct hlo group = hlo_reduce(hlo, "add", hlo_convert(hlo, ended, HLO_I32), shape_of(1, INT64_C(1)), false);
  blocks.group = hlo_binary(hlo, "minimum", group, hlo_number((double)groups - 1));
  const struct hlo within = hlo_sub(hlo, hlo_iota(hlo, shape_of(1, blocks.count), 0, HLO_I32),
                                    hlo_rows(hlo, hlo_slice(hlo, sums, 0, 0, groups), blocks.group));
  const struct hlo first = hlo_add(hlo, hlo_rows(hlo, from, blocks.group), hlo_mul(hlo, within, of_size));
  const struct hlo left = hlo_sub(hlo, hlo_rows(hlo, to, blocks.group), first);
  blocks.valid = hlo_binary(hlo, "maximum", hlo_binary(hlo, "minimum", left, of_size), hlo_number(0));
  blocks.first = hlo_binary(hlo, "minimum", first, hlo_number((double)rows));
  return blocks;
}

/* The rows of a block, of x with a block of zeros at its end; zeros where it has fewer. */
static struct hlo lower_block(struct stablehlo *hlo, struct hlo x, struct hlo first, struct hlo valid, int64_t rows) {
  const struct hlo block = hlo_slice_at(hlo, x, 0, first, rows);
  const struct hlo has = hlo_compare(hlo, "LT", hlo_iota(hlo, block.shape, 0, HLO_I32), valid);
  return hlo_select(hlo, has, block, hlo_number(0));
}

static struct hlo lower_zeros(struct stablehlo *hlo, struct shape shape) {
  return hlo_broadcast(hlo, hlo_table(hlo, &(double){0}, (struct shape){0}, HLO_F32), shape);
}

/* Carried: y; rows: the block's first row, how many it has, its group; whole: x and the weights. A block writes zeros
 * over what comes after its group, where later blocks write theirs. */
static void lower_step(struct stablehlo *hlo, struct hlo_step_operands *at) {
  const int along = node_int(hlo_node(hlo), "straight") ? 0 : 1;
  const struct hlo x = at->whole[0], weights = at->whole[1];
  const struct hlo block = lower_block(hlo, x, at->rows[0], at->rows[1], lower_size(hlo));
  const struct hlo one = hlo_slice_at(hlo, weights, 0, at->rows[2], 1);
  const struct hlo weight = hlo_reshape(hlo, one, shape_of(2, weights.shape.dim[1], weights.shape.dim[2]));
  at->carried[0] = hlo_put_at(hlo, at->carried[0], hlo_dot(hlo, block, weight, 0, 1, along), 0, at->rows[0]);
}

static void lower(struct stablehlo *hlo) {
  const struct node *node = hlo_node(hlo);
  const struct hlo x = hlo_input(hlo, 0);
  const struct lowered_blocks blocks = lower_blocks(hlo, hlo_raw_input(hlo, 1));
  struct hlo *weights = arena_alloc(hlo_arena(hlo), (size_t)groups_of(node) * sizeof *weights);
  struct shape one = node->inputs[FIRST]->shape;
  one = shape_of(3, INT64_C(1), one.dim[0], one.dim[1]);
  for (int g = 0; g < groups_of(node); g++) weights[g] = hlo_reshape(hlo, hlo_input(hlo, FIRST + g), one);
  struct hlo_loop loop = {
      .name = "grouped_matmul",
      .steps = blocks.count,
      .n_carried = 1,
      .n_sliced = 3,
      .n_whole = 2,
      .carried = {lower_zeros(hlo, shape_of(2, x.shape.dim[0] + blocks.rows, node->outputs[0]->shape.dim[1]))},
      .sliced = {blocks.first, blocks.valid, blocks.group},
      .whole = {hlo_pad(hlo, x, 0, 0, blocks.rows, 0), hlo_concat(hlo, weights, groups_of(node), 0)}};
  hlo_run_loop(hlo, &loop, lower_step);
  hlo_result(hlo, 0, hlo_slice(hlo, loop.carried[0], 0, 0, x.shape.dim[0]));
}

static const struct op_kind kind = {
    .name = "grouped_matmul",
    .lower.write = lower,
    .onnx.write = write_onnx,
    .class = OP_KERNEL,
    .input_names = {"x", "starts"},
    .output_names = {"y"},
    .infer = infer,
    .sequence.incremental = incremental,
    .gradient = gradient,
    .types.autocast = {.cpu = AUTOCAST_FLOAT32, .cuda = AUTOCAST_BITS16},
    .types.float32 = FLOAT32_ON_CPU,
    .cost.flops = flops,
    .cost.matmul_flops = flops,
    .index.limit = index_limit,
    .ranks.by_group = FIRST,
    .ranks.place_sorted = place_sorted,
    .reference.evaluate = reference,
};

/* ---- y_g [M][N] = the transpose of a's rows of group g, starts[g] to starts[g + 1], times b's ---- */

static int infer_weight(struct arena *arena, const struct node *node, struct shape *shapes, enum dtype *dtypes,
                        const char **error) {
  (void)arena;
  (void)error;
  int64_t m = op_columns(node->inputs[0]->shape), n = op_columns(node->inputs[1]->shape);
  op_result(shapes, dtypes, shape_of(2, m, n), DTYPE_FLOAT32);
  return (int)op_columns(node->inputs[2]->shape) - 1;
}

static void reference_weight(const struct node *node, const double *const *inputs, double *const *outputs) {
  int64_t m = op_columns(node->inputs[0]->shape), n = op_columns(node->inputs[1]->shape);
  for (int g = 0; g < node->n_outputs; g++) {
    memset(outputs[g], 0, (size_t)(m * n) * sizeof(double));
    for (int64_t r = (int64_t)inputs[2][g]; r < (int64_t)inputs[2][g + 1]; r++)
      for (int64_t i = 0; i < m * n; i++) outputs[g][i] += inputs[0][r * m + i / n] * inputs[1][r * n + i % n];
  }
}

/* Of all rows, as many as there can be. */
static double flops_weight(const struct node *node) {
  return 2 * (double)shape_count(node->inputs[0]->shape) * (double)op_columns(node->inputs[1]->shape);
}

static int64_t index_limit_weight(const struct node *node, int input) {
  return input == 2 ? node->inputs[0]->shape.dim[0] + 1 : 0;
}

/* Carried: y of all groups; rows: as above; whole: a and b. */
static void lower_step_weight(struct stablehlo *hlo, struct hlo_step_operands *at) {
  const int64_t rows = lower_size(hlo);
  const struct hlo a = lower_block(hlo, at->whole[0], at->rows[0], at->rows[1], rows);
  const struct hlo b = lower_block(hlo, at->whole[1], at->rows[0], at->rows[1], rows);
  const struct hlo before = hlo_slice_at(hlo, at->carried[0], 0, at->rows[2], 1);
  const struct hlo added = hlo_reshape(hlo, hlo_dot(hlo, a, b, 0, 0, 0), before.shape);
  at->carried[0] = hlo_put_at(hlo, at->carried[0], hlo_add(hlo, before, added), 0, at->rows[2]);
}

static void lower_weight(struct stablehlo *hlo) {
  const struct node *node = hlo_node(hlo);
  const struct hlo a = hlo_input(hlo, 0), b = hlo_input(hlo, 1);
  const struct lowered_blocks blocks = lower_blocks(hlo, hlo_raw_input(hlo, 2));
  struct hlo_loop loop = {
      .name = "grouped_matmul_weight",
      .steps = blocks.count,
      .n_carried = 1,
      .n_sliced = 3,
      .n_whole = 2,
      .carried = {lower_zeros(hlo, shape_of(3, (int64_t)node->n_outputs, a.shape.dim[1], b.shape.dim[1]))},
      .sliced = {blocks.first, blocks.valid, blocks.group},
      .whole = {hlo_pad(hlo, a, 0, 0, blocks.rows, 0), hlo_pad(hlo, b, 0, 0, blocks.rows, 0)}};
  hlo_run_loop(hlo, &loop, lower_step_weight);
  for (int g = 0; g < node->n_outputs; g++) hlo_result(hlo, g, hlo_slice(hlo, loop.carried[0], 0, g, 1));
}

static const struct op_kind kind_weight = {
    .name = "grouped_matmul_weight",
    .lower.write = lower_weight,
    .class = OP_KERNEL,
    .template_name = "grouped_matmul",
    .input_names = {"a", "b", "starts"},
    .infer = infer_weight,
    .alike = true,
    .memory.accumulates = 1,
    .types.autocast = {.cpu = AUTOCAST_FLOAT32, .cuda = AUTOCAST_BITS16},
    .cost.flops = flops_weight,
    .cost.matmul_flops = flops_weight,
    .index.limit = index_limit_weight,
    .reference.evaluate = reference_weight,
};

/* grouped_matmul(x, starts, n, weights), whose elements follow one by one. */
static struct value *build(struct builder *builder, const struct argument *arguments, int count) {
  int n = (int)arguments[2].integer;
  if (n < 1 || n > count - 3) {
    builder_error(builder, "grouped_matmul: %d weights of an array that has %d", n, count - 3);
    return NULL;
  }
  struct value **inputs = arena_alloc(builder_arena(builder), (size_t)(n + FIRST) * sizeof *inputs);
  for (int i = 0; i < n + FIRST; i++) inputs[i] = op_tensor(arguments, i < FIRST ? i : i + 1);
  struct attribute straight = attribute_int("straight", 0);
  return builder_op(builder, "grouped_matmul", inputs, n + FIRST, &straight, 1);
}

const struct op_file op_file_grouped_matmul = {
    .name = "grouped_matmul",
    .kinds = (const struct op_kind *const[]){&kind, &kind_weight, NULL},
    .functions = (const struct op_function[]){{"grouped_matmul", .build = build}, {0}},
};
