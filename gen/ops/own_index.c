/* y = the index x within the `rows` that a rank along an axis of the mesh has of all, or -1 where it is another rank's:
 * x - rank rows if that is one of them. x may be `ignore`, which nobody has. `axis` is an enum axis, `ranks` its
 * length; which of these a rank is, is read when a program starts. `rank` is the one of the reference alone. */
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
  return node_int(node, "rows") * node_int(node, "ranks");
}

static void index_range(const struct node *node, int64_t none, int64_t *low, int64_t *high) {
  *low = none == -1 ? 0 : -1;
  *high = node_int(node, "rows") - 1;
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
    .cost.flops = op_flops_none,
    .index.limit = index_limit,
    .index.ignores = true,
    .index.range = index_range,
    .ranks.part_axis = axis_of,
    .truth.reference = reference,
};

struct value *op_own_index(struct builder *builder, struct value *index, int64_t rows, int64_t ranks, int64_t axis,
                           int64_t ignored) {
  struct attribute attributes[] = {attribute_int("axis", axis), attribute_int("ranks", ranks), attribute_int("rank", 0),
                                   attribute_int("rows", rows), attribute_int("ignore", ignored)};
  return builder_op(builder, "own_index", &index, 1, attributes, 5);
}

const struct op_file op_file_own_index = {
    .name = "own_index",
    .kinds = (const struct op_kind *const[]){&kind, NULL},
};
