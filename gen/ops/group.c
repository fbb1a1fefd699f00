/* Positions grouped by what was chosen there, so that matmuls of one group are one matrix product. index [...][T][k]
 * says which of `groups` each of T rows chose, k times. Where there is a capacity, the rows of each of the leading
 * dimensions (a group of tokens) fill it in the order of their first choices, then of their second ones, and so on;
 * what comes too late is dropped (Lepikhin et al., arXiv:2006.16668, algorithm 1; Fedus, Zoph, Shazeer,
 * arXiv:2101.03961, section 2.2). starts[g] is where group g begins in the order, starts[groups] where the dropped ones
 * do; order holds the positions, counted in index, or the rows that they are of. */
#include <stdlib.h>

#include "gen/onnx/onnx.h"
#include "gen/ops/support/support.h"
#include "gen/stablehlo/stablehlo.h"

/* index as [blocks][rows][choices]. */
struct extents {
  int64_t blocks, rows, choices;
};

static struct extents extents_of(const struct value *index) {
  int rank = index->shape.rank;
  return (struct extents){shape_product(index->shape, 0, rank - 2), index->shape.dim[rank - 2],
                          index->shape.dim[rank - 1]};
}

static bool good_index(struct arena *arena, const struct node *node, const char **error) {
  return op_check_dtype(arena, node, 0, DTYPE_INT32, error) && op_check_rank(arena, node, 0, 2, error);
}

static int infer_starts(struct arena *arena, const struct node *node, struct shape *shapes, enum dtype *dtypes,
                        const char **error) {
  if (!good_index(arena, node, error)) return 0;
  return op_result(shapes, dtypes, shape_of(1, node_int(node, "groups") + 1), DTYPE_INT32);
}

static int infer_order(struct arena *arena, const struct node *node, struct shape *shapes, enum dtype *dtypes,
                       const char **error) {
  if (!good_index(arena, node, error)) return 0;
  if (!op_check_shape(arena, node, 1, shape_of(1, node_int(node, "groups") + 1), "where each group starts", error))
    return 0;
  return op_result(shapes, dtypes, shape_of(1, shape_count(node->inputs[0]->shape)), DTYPE_INT32);
}

/* Visits the positions in the order of priority; each goes to `next` of its group, which counts up, a dropped one to
 * that after the last group. order: NULL, or where the positions are written. */
static void sort_by_group(const struct node *node, const double *index, int64_t *next, double *order) {
  struct extents e = extents_of(node->inputs[0]);
  int64_t groups = node_int(node, "groups"), capacity = node_int(node, "capacity");
  int64_t *taken = calloc((size_t)groups, sizeof *taken);
  for (int64_t b = 0; b < e.blocks && taken != NULL; b++) {
    for (int64_t g = 0; g < groups; g++) taken[g] = 0;
    for (int64_t c = 0; c < e.choices; c++)
      for (int64_t r = 0; r < e.rows; r++) {
        int64_t position = (b * e.rows + r) * e.choices + c, group = (int64_t)index[position];
        bool fits = capacity == 0 || taken[group]++ < capacity;
        int64_t at = next[fits ? group : groups]++;
        if (order != NULL) order[at] = (double)(node_int(node, "rows") ? position / e.choices : position);
      }
  }
  free(taken);
}

static void reference_starts(const struct node *node, const double *const *inputs, double *const *outputs) {
  int64_t groups = node_int(node, "groups"), sum = 0;
  int64_t *counts = calloc((size_t)groups + 1, sizeof *counts);
  if (counts == NULL) return;
  sort_by_group(node, inputs[0], counts, NULL);
  for (int64_t g = 0; g <= groups; g++) {
    outputs[0][g] = (double)sum;
    sum += counts[g];
  }
  free(counts);
}

static void reference_order(const struct node *node, const double *const *inputs, double *const *outputs) {
  int64_t groups = node_int(node, "groups");
  int64_t *next = calloc((size_t)groups + 1, sizeof *next);
  if (next == NULL) return;
  for (int64_t g = 0; g <= groups; g++) next[g] = (int64_t)inputs[1][g];
  sort_by_group(node, inputs[0], next, outputs[0]);
  free(next);
}

static int64_t index_limit(const struct node *node, int input) {
  return input == 0 ? node_int(node, "groups") : shape_count(node->inputs[0]->shape) + 1;
}

static void range_starts(const struct node *node, int64_t none, int64_t *low, int64_t *high) {
  (void)none;
  *low = 0;
  *high = shape_count(node->inputs[0]->shape);
}

static void range_order(const struct node *node, int64_t none, int64_t *low, int64_t *high) {
  (void)none;
  int64_t count = shape_count(node->inputs[0]->shape);
  *low = 0;
  *high = (node_int(node, "rows") ? count / extents_of(node->inputs[0]).choices : count) - 1;
}

/* Without a capacity the current positions are grouped by themselves: what is made of each in its group, and put back,
 * depends on no other. */
static bool is_independent(const struct node *node, const struct new_positions *new) {
  struct extents e = extents_of(node->inputs[0]);
  return node_int(node, "capacity") == 0 && e.blocks == 1 &&
         op_is_at(new->timelines[0], node->inputs[0]->shape.rank - 2);
}

static struct value *incremental_starts(struct builder *builder, const struct node *node, struct new_positions *new) {
  if (!is_independent(node, new)) return NULL;
  new->timeline = (struct timeline){.axis = AXIS_SORTED, .more = -1, .order = node->inputs[0]};
  return builder_op(builder, "group_starts", new->inputs, 1, node->attributes, node->n_attributes);
}

static struct value *incremental_order(struct builder *builder, const struct node *node, struct new_positions *new) {
  if (!is_independent(node, new) || new->timelines[1].order != node->inputs[0]) return NULL;
  int choices = (int)extents_of(node->inputs[0]).choices;
  new->timeline = (struct timeline){.axis = AXIS_SORTED, .more = choices - 1, .order = node->inputs[0]};
  return builder_op(builder, "group_order", new->inputs, 2, node->attributes, node->n_attributes);
}

/* Without a capacity a rank's rows are grouped by themselves, too: each is made into something in its group, and put
 * back to where it was. */
static bool place_starts(const struct node *node, int seed, int64_t ranks, struct placement *placements) {
  int rows = node->inputs[0]->shape.rank - 2;
  (void)ranks;
  if (seed != 0 || placements[0].dim != rows || node_int(node, "capacity") > 0) return false;
  placements[1] = (struct placement){.form = PLACED_SORTED,
                                     .dim = -1,
                                     .blocks = extents_of(node->inputs[0]).blocks * placements[0].blocks,
                                     .order = node->inputs[0]->id};
  return true;
}

static bool place_order(const struct node *node, int seed, int64_t ranks, struct placement *placements) {
  if (!place_starts(node, seed, ranks, placements)) return false;
  placements[2] = placement_along(placements[1], 0);
  return true;
}

/* Where groups start in rows of a rank. */
static bool place_order_by(const struct node *node, int seed, struct placement *placements) {
  int64_t blocks = extents_of(node->inputs[0]).blocks;
  if (seed != 1 || placements[1].dim >= 0 || placements[1].order != node->inputs[0]->id) return false;
  if (placements[1].blocks % blocks != 0) return false;
  placements[0] = placement_split(node->inputs[0]->shape.rank - 2, placements[1].blocks / blocks);
  placements[2] = placement_along(placements[1], 0);
  return true;
}

static const char *needs(const struct node *node) {
  return node_int(node, "capacity") > 0 ? "fills a group's capacity in the order of a sequence's positions, of which "
                                          "a rank has some"
                                        : NULL;
}

/* The group of each position, those in the order of priority: [positions], int32; of a dropped one, `groups`. */
static struct hlo lower_groups(struct stablehlo *hlo) {
  const struct node *node = hlo_node(hlo);
  const struct extents e = extents_of(node->inputs[0]);
  const int64_t groups = node_int(node, "groups"), capacity = node_int(node, "capacity"), count = e.rows * e.choices;
  struct hlo index = hlo_reshape(hlo, hlo_raw_input(hlo, 0), shape_of(3, e.blocks, e.rows, e.choices));
  index = hlo_reshape(hlo, hlo_exchange(hlo, index, 1, 2), shape_of(2, e.blocks, count));
  if (capacity > 0) {
    const struct shape square = shape_of(3, e.blocks, count, count);
    const struct hlo first = hlo_iota(hlo, square, 1, HLO_I32), second = hlo_iota(hlo, square, 2, HLO_I32);
    const struct hlo mine = hlo_reshape(hlo, index, shape_of(3, e.blocks, count, INT64_C(1)));
    const struct hlo other = hlo_reshape(hlo, index, shape_of(3, e.blocks, INT64_C(1), count));
    const struct hlo before = hlo_binary(hlo, "and", hlo_compare(hlo, "EQ", hlo_broadcast(hlo, mine, square), other),
                                         hlo_compare(hlo, "LT", second, first));
    const struct hlo taken = hlo_reduce(hlo, "add", hlo_convert(hlo, before, HLO_I32), shape_of(1, INT64_C(2)), false);
    const struct hlo fits = hlo_compare(hlo, "LT", taken, hlo_number((double)capacity));
    index = hlo_select(hlo, fits, index, hlo_number((double)groups));
  }
  return hlo_reshape(hlo, index, shape_of(1, e.blocks * count));
}

/* How many are of an earlier group. */
static void lower_starts(struct stablehlo *hlo) {
  const struct hlo index = lower_groups(hlo);
  const struct shape all = shape_of(2, node_int(hlo_node(hlo), "groups") + 1, index.shape.dim[0]);
  const struct hlo before = hlo_compare(hlo, "LT", index, hlo_iota(hlo, all, 0, HLO_I32));
  hlo_result(hlo, 0, hlo_reduce(hlo, "add", hlo_convert(hlo, before, HLO_I32), shape_of(1, INT64_C(1)), false));
}

/* Positions sorted by group, in each by priority. */
static void lower_order(struct stablehlo *hlo) {
  const struct node *node = hlo_node(hlo);
  const struct extents e = extents_of(node->inputs[0]);
  const struct hlo order = hlo_order(hlo, lower_groups(hlo), false);
  struct hlo numbers = hlo_iota(hlo, shape_of(1, order.shape.dim[0]), 0, HLO_I32);
  if (node_int(node, "rows")) numbers = hlo_binary(hlo, "divide", numbers, hlo_number((double)e.choices));
  numbers = hlo_exchange(hlo, hlo_reshape(hlo, numbers, shape_of(3, e.blocks, e.rows, e.choices)), 1, 2);
  hlo_result(hlo, 0, hlo_rows(hlo, hlo_reshape(hlo, numbers, order.shape), order));
}

/* The same. */
static void write_starts(struct onnx *onnx) {
  const int64_t groups = onnx_int(onnx, "groups");
  const struct onnx_extent column[] = {onnx_fixed(-1), onnx_fixed(1)}, rows = onnx_fixed(0);
  const struct attribute keeps = attribute_int("keepdims", 0);
  if (onnx_int(onnx, "capacity") > 0) {
    onnx_fail(onnx, "a group with a capacity drops what comes too late");
    return;
  }
  const char *index = onnx_reshape(onnx, onnx_input(onnx, 0), column, 2);
  const char *each = onnx_cast(onnx, onnx_range(onnx, onnx_fixed(groups + 1)), DTYPE_INT32);
  const char *before = onnx_cast(onnx, onnx_binary(onnx, "Less", index, each), DTYPE_INT32);
  const char *inputs[] = {before, onnx_shape(onnx, &rows, 1)};
  onnx_result(onnx, 0, onnx_op(onnx, "ReduceSum", inputs, 2, &keeps, 1));
}

static const struct op_kind kind_starts = {
    .name = "group_starts",
    .lower.write = lower_starts,
    .onnx.write = write_starts,
    .class = OP_KERNEL,
    .template_name = "group",
    .input_names = {"index"},
    .output_names = {"y"},
    .infer = infer_starts,
    .sequence.incremental = incremental_starts,
    .cost.flops = op_flops_none,
    .index.limit = index_limit,
    .index.range = range_starts,
    .ranks.place = place_starts,
    .ranks.needs = needs,
    .reference.evaluate = reference_starts,
};

/* x [blocks][rows][choices] in the order in which positions are grouped. */
static const char *by_choice(struct onnx *onnx, const char *x) {
  const int rank = onnx_rank(onnx, 0);
  const struct onnx_extent all = onnx_fixed(-1);
  const struct onnx_extent extents[] = {all, onnx_dim(onnx, 0, rank - 2), onnx_dim(onnx, 0, rank - 1)};
  return onnx_reshape(onnx, onnx_exchange(onnx, onnx_reshape(onnx, x, extents, 3), 3, 1, 2), &all, 1);
}

/* Positions sorted by group, in each by their order: by keys of which no two are equal. */
static void write_order(struct onnx *onnx) {
  const struct onnx_extent count = onnx_result_dim(onnx, 0);
  const struct attribute smallest = attribute_int("largest", 0);
  onnx_ignore(onnx, "groups"); /* the order is the same for more */
  if (onnx_int(onnx, "capacity") > 0) onnx_fail(onnx, "a group with a capacity drops what comes too late");
  const char *visited = onnx_range(onnx, count), *positions = by_choice(onnx, visited);
  const char *group = onnx_cast(onnx, by_choice(onnx, onnx_input(onnx, 0)), DTYPE_INT64);
  const char *keys = onnx_binary(onnx, "Add", onnx_binary(onnx, "Mul", group, onnx_count(onnx, count)), visited);
  const char *inputs[] = {keys, onnx_shape(onnx, &count, 1)};
  const char *order = onnx_node(onnx, "TopK", inputs, 2, &smallest, 1, 2)[1];
  order = onnx_binary(onnx, "Gather", positions, order);
  if (onnx_int(onnx, "rows") != 0)
    order = onnx_binary(onnx, "Div", order, onnx_count(onnx, onnx_dim(onnx, 0, onnx_rank(onnx, 0) - 1)));
  onnx_result(onnx, 0, onnx_cast(onnx, order, DTYPE_INT32));
}

static const struct op_kind kind_order = {
    .name = "group_order",
    .lower.write = lower_order,
    .onnx.write = write_order,
    .class = OP_KERNEL,
    .template_name = "group",
    .input_names = {"index", "starts"},
    .output_names = {"y"},
    .infer = infer_order,
    .sequence.incremental = incremental_order,
    .cost.flops = op_flops_none,
    .index.limit = index_limit,
    .index.range = range_order,
    .ranks.place = place_order,
    .ranks.place_sorted = place_order_by,
    .ranks.needs = needs,
    .reference.evaluate = reference_order,
};

/* Reads (index, groups, capacity); false after an error. */
static bool read_groups(struct builder *builder, const struct argument *arguments, struct attribute *attributes) {
  int64_t groups = arguments[1].integer, capacity = arguments[2].integer;
  attributes[0] = attribute_int("groups", groups);
  attributes[1] = attribute_int("capacity", capacity);
  if (groups >= 1 && groups <= 4096 && capacity >= 0) return op_tensor(arguments, 0) != NULL;
  builder_error(builder, "group: %lld groups of capacity %lld; there are 1 to 4096, and 0 is no limit",
                (long long)groups, (long long)capacity);
  return false;
}

/* group_starts(index, groups, capacity) */
static struct value *build_starts(struct builder *builder, const struct argument *arguments, int count) {
  (void)count;
  struct attribute attributes[2];
  if (!read_groups(builder, arguments, attributes)) return NULL;
  return builder_op(builder, "group_starts", (struct value *[]){op_tensor(arguments, 0)}, 1, attributes, 2);
}

static struct value *order(struct builder *builder, const struct argument *arguments, bool rows) {
  struct attribute attributes[3] = {[2] = attribute_int("rows", rows)};
  if (!read_groups(builder, arguments, attributes)) return NULL;
  struct value *inputs[] = {op_tensor(arguments, 0), build_starts(builder, arguments, 3)};
  return builder_op(builder, "group_order", inputs, 2, attributes, 3);
}

/* group_positions(index, groups, capacity) */
static struct value *build_positions(struct builder *builder, const struct argument *arguments, int count) {
  (void)count;
  return order(builder, arguments, false);
}

/* group_rows(index, groups, capacity) */
static struct value *build_rows(struct builder *builder, const struct argument *arguments, int count) {
  (void)count;
  return order(builder, arguments, true);
}

const struct op_file op_file_group = {
    .name = "group",
    .kinds = (const struct op_kind *const[]){&kind_starts, &kind_order, NULL},
    .functions = (const struct op_function[]){{"group_starts", .build = build_starts},
                                              {"group_positions", .build = build_positions},
                                              {"group_rows", .build = build_rows},
                                              {0}},
};
