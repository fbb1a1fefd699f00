/* What a rank along an axis of the mesh has of `whole` indices that ranks divide, `rows` each: the last one may have
 * fewer, and its part is padded. `axis` is an enum axis; which rank it is, is read when a program starts, and `rank` is
 * the one of the reference alone.
 *
 * own_index: y = the index x within a rank's own, or -1 where it is another rank's: x - rank rows if that is one of
 * them. x may be `ignore`, which nobody has.
 * own_extent: y [1] = how many the rank has. */
#include "gen/ops/support/support.h"

static int infer(struct arena *arena, const struct node *node, struct shape *shapes, enum dtype *dtypes,
                 const char **error) {
  if (!op_check_dtype(arena, node, 0, DTYPE_INT32, error)) return 0;
  return op_result(shapes, dtypes, node->inputs[0]->shape, DTYPE_INT32);
}

static void reference(const struct node *node, const double *const *inputs, double *const *outputs) {
  int64_t rows = node_int(node, "rows"), first = node_int(node, "rank") * rows;
  for (int64_t i = 0; i < shape_count(node->inputs[0]->shape); i++) {
    int64_t own = (int64_t)inputs[0][i] - first;
    outputs[0][i] = own >= 0 && own < rows ? (double)own : -1;
  }
}

static int64_t index_limit(const struct node *node, int input) {
  (void)input;
  return node_int(node, "whole");
}

static void index_range(const struct node *node, int64_t none, int64_t *low, int64_t *high) {
  *low = none == -1 ? 0 : -1;
  *high = node_int(node, "rows") - 1;
}

static int along(const struct node *node, int axis, int input) {
  (void)node;
  (void)input;
  return axis;
}

static int axis_of(const struct node *node) {
  return (int)node_int(node, "axis");
}

static const struct op_kind kind = {
    .name = "own_index",
    .class = OP_KERNEL,
    .input_names = {"x"},
    .output_names = {"y"},
    .infer = infer,
    .sequence.along = along,
    .cost.flops = op_flops_none,
    .index.limit = index_limit,
    .index.ignores = true,
    .index.range = index_range,
    .ranks.part_axis = axis_of,
    .reference.evaluate = reference,
};

struct value *op_own_index(struct builder *builder, struct value *index, int64_t rows, int64_t whole, int64_t axis,
                           int64_t ignored) {
  struct attribute attributes[] = {attribute_int("axis", axis), attribute_int("whole", whole), attribute_int("rank", 0),
                                   attribute_int("rows", rows), attribute_int("ignore", ignored)};
  return builder_op(builder, "own_index", &index, 1, attributes, 5);
}

/* ---- How many ---- */

static int infer_extent(struct arena *arena, const struct node *node, struct shape *shapes, enum dtype *dtypes,
                        const char **error) {
  (void)arena;
  (void)node;
  (void)error;
  return op_result(shapes, dtypes, shape_of(1, (int64_t)1), DTYPE_INT32);
}

static void reference_extent(const struct node *node, const double *const *inputs, double *const *outputs) {
  (void)inputs;
  int64_t rows = node_int(node, "rows"), rest = node_int(node, "whole") - node_int(node, "rank") * rows;
  outputs[0][0] = (double)(rest < rows ? rest : rows);
}

static const struct op_kind kind_extent = {
    .name = "own_extent",
    .class = OP_KERNEL,
    .template_name = "own_index",
    .output_names = {"y"},
    .infer = infer_extent,
    .cost.flops = op_flops_none,
    .ranks.part_axis = axis_of,
    .reference.evaluate = reference_extent,
};

struct value *op_own_extent(struct builder *builder, int64_t rows, int64_t whole, int64_t axis) {
  struct attribute attributes[] = {attribute_int("axis", axis), attribute_int("whole", whole), attribute_int("rank", 0),
                                   attribute_int("rows", rows)};
  return builder_op(builder, "own_extent", NULL, 0, attributes, 4);
}

const struct op_file op_file_own_index = {
    .name = "own_index",
    .kinds = (const struct op_kind *const[]){&kind, &kind_extent, NULL},
};
