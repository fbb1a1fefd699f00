/* y = the places of the k largest of a row of the last dimension, from the largest down; of equal ones the first comes
 * first. Without a gradient; that of the numbers there goes to their places. */
#include "gen/ops/support/support.h"

static int infer(struct arena *arena, const struct node *node, struct shape *shapes, enum dtype *dtypes,
                 const char **error) {
  if (!op_check_float(arena, node, 0, error) || !op_check_rank(arena, node, 0, 1, error)) return 0;
  struct shape x = node->inputs[0]->shape;
  int64_t k = node_int(node, "k");
  if (k < 1 || k > op_columns(x))
    return op_fail(arena, node, error, "the %lld largest of the last dimension of %s", (long long)k,
                   op_operand_text(arena, node, 0));
  return op_result(shapes, dtypes, op_with_extent(x, x.rank - 1, k), DTYPE_INT32);
}

/* Whether place a comes before b in a row. */
static bool precedes(const double *x, int64_t a, int64_t b) {
  return x[a] > x[b] || (x[a] == x[b] && a < b);
}

static void reference(const struct node *node, const double *const *inputs, double *const *outputs) {
  int64_t columns = op_columns(node->inputs[0]->shape), rows = op_rows(node->inputs[0]->shape), k = node_int(node, "k");
  for (int64_t r = 0; r < rows; r++)
    for (int64_t c = 0; c < columns; c++) {
      int64_t before = 0;
      for (int64_t i = 0; i < columns; i++) before += precedes(inputs[0] + r * columns, i, c);
      if (before < k) outputs[0][r * k + before] = (double)c;
    }
}

static double flops(const struct node *node) {
  return op_flops_each(node, 0, (double)op_columns(node->inputs[0]->shape));
}

static void range(const struct node *node, int64_t *low, int64_t *high) {
  *low = 0;
  *high = op_columns(node->inputs[0]->shape) - 1;
}

static const struct op_kind kind = {
    .name = "top_k",
    .class = OP_KERNEL,
    .input_names = {"x"},
    .output_names = {"y"},
    .infer = infer,
    .flops = flops,
    .range = range,
    .reference = reference,
};

/* top_k_places(x, k) */
static struct value *build_places(struct builder *builder, const struct argument *arguments, int count) {
  (void)count;
  struct value *x = op_tensor(arguments, 0);
  struct attribute k = attribute_int("k", arguments[1].integer);
  return builder_op(builder, "top_k", &x, 1, &k, 1);
}

/* top_k(x, k) */
static struct value *build(struct builder *builder, const struct argument *arguments, int count) {
  struct value *x = op_tensor(arguments, 0), *places = build_places(builder, arguments, count);
  return places == NULL ? NULL : op_gather(builder, x, x->shape.rank - 1, places);
}

const struct op_file op_file_top_k = {
    .name = "top_k",
    .kinds = (const struct op_kind *const[]){&kind, NULL},
    .functions = (const struct op_function[]){{"top_k", .build = build}, {"top_k_places", .build = build_places}, {0}},
};
