/* y = x as int32, cut to whole numbers within 0 and below - 1, so that a column of a table can choose a row of another
 * one. It has no gradient. */
#include "gen/ops/support/elementwise.h"

/* Whole numbers that float32 has all of. */
static const int64_t most = INT64_C(1) << 24;

static int infer(struct arena *arena, const struct node *node, struct shape *shapes, enum dtype *dtypes,
                 const char **error) {
  if (!op_check_float(arena, node, 0, error)) return 0;
  return op_result(shapes, dtypes, node->inputs[0]->shape, DTYPE_INT32);
}

static double apply(const struct node *node, const double *x) {
  double last = (double)node_int(node, "last");
  return x[0] > 0 ? (double)(int64_t)(x[0] < last ? x[0] : last) : 0;
}

static void range(const struct node *node, int64_t *low, int64_t *high) {
  *low = 0;
  *high = node_int(node, "last");
}

static const struct op_kind kind = {
    .name = "cast_index",
    .class = OP_ELEMENTWISE,
    .input_names = {"x"},
    .output_names = {"y"},
    .infer = infer,
    .autocast = {AUTOCAST_FLOAT32, AUTOCAST_AS_IS},
    .wide = true,
    .apply = apply,
    .range = range,
    .reference = op_reference_elementwise,
};

/* cast_index(x, below) */
static struct value *build(struct builder *builder, const struct argument *arguments, int count) {
  (void)count;
  struct value *x = op_tensor(arguments, 0);
  int64_t below = arguments[1].integer;
  struct attribute last = attribute_int("last", below - 1);
  if (below >= 1 && below <= most) return builder_op(builder, "cast_index", &x, 1, &last, 1);
  builder_error(builder, "cast_index: numbers lie below 1 to %lld, not below %lld", (long long)most, (long long)below);
  return NULL;
}

const struct op_file op_file_cast_index = {
    .name = "cast_index",
    .kinds = (const struct op_kind *const[]){&kind, NULL},
    .functions = (const struct op_function[]){{"cast_index", .build = build}, {0}},
};
