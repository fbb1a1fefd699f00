/* y = 1 in the places of the k largest of a row of the last dimension, else 0; of equal ones the first count. Without a
 * gradient: it is constant but for the jumps. */
#include "gen/ops/support/support.h"

static int infer(struct arena *arena, const struct node *node, struct shape *shapes, enum dtype *dtypes,
                 const char **error) {
  if (!op_check_float(arena, node, 0, error) || !op_check_rank(arena, node, 0, 1, error)) return 0;
  struct shape x = node->inputs[0]->shape;
  int64_t k = node_int(node, "k");
  if (k < 1 || k > op_columns(x))
    return op_fail(arena, node, error, "the %lld largest of the last dimension of %s", (long long)k,
                   op_operand_text(arena, node, 0));
  return op_result(shapes, dtypes, x, node->inputs[0]->dtype);
}

/* How many of a row come before x[c]: larger ones, and equal ones to the left. */
static int64_t place_of(const double *x, int64_t columns, int64_t c) {
  int64_t before = 0;
  for (int64_t i = 0; i < columns; i++) before += x[i] > x[c] || (x[i] == x[c] && i < c);
  return before;
}

static void reference(const struct node *node, const double *const *inputs, double *const *outputs) {
  int64_t columns = op_columns(node->inputs[0]->shape), rows = op_rows(node->inputs[0]->shape);
  for (int64_t r = 0; r < rows; r++)
    for (int64_t c = 0; c < columns; c++)
      outputs[0][r * columns + c] = place_of(inputs[0] + r * columns, columns, c) < node_int(node, "k");
}

static double flops(const struct node *node) {
  return op_flops_each(node, 0, (double)op_columns(node->inputs[0]->shape));
}

static const struct op_kind kind = {
    .name = "top_k_mask",
    .class = OP_KERNEL,
    .input_names = {"x"},
    .output_names = {"y"},
    .infer = infer,
    .autocast = {AUTOCAST_AS_IS, AUTOCAST_FLOAT32},
    .flops = flops,
    .reference = reference,
};

/* top_k_mask(x, k) */
static struct value *build(struct builder *builder, const struct argument *arguments, int count) {
  (void)count;
  struct value *x = op_tensor(arguments, 0);
  struct attribute k = attribute_int("k", arguments[1].integer);
  return builder_op(builder, "top_k_mask", &x, 1, &k, 1);
}

const struct op_file op_file_top_k_mask = {
    .name = "top_k_mask",
    .kinds = (const struct op_kind *const[]){&kind, NULL},
    .functions = (const struct op_function[]){{"top_k_mask", .build = build}, {0}},
};
