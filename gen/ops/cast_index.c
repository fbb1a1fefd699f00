/* y = x as int32, so that a column of a table can choose a row of another one: data is below the limit, which is asked
 * of it when it is read, and what is computed is cut to whole numbers within 0 and the limit - 1. Of a target, one
 * number more stays as it is, for a loss to leave out. Neither has a gradient. */
#include "gen/onnx/onnx.h"
#include "gen/ops/support/elementwise.h"
#include "gen/stablehlo/stablehlo.h"

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

static void range(const struct node *node, int64_t none, int64_t *low, int64_t *high) {
  (void)none;
  *low = 0;
  *high = node_int(node, "last");
}

static int64_t index_limit(const struct node *node, int input) {
  (void)input;
  return node_int(node, "last") + 1;
}

static void write_onnx(struct onnx *onnx) {
  const char *low = onnx_float(onnx, 0), *high = onnx_float(onnx, (double)onnx_int(onnx, "last"));
  onnx_result(onnx, 0, onnx_cast(onnx, onnx_ternary(onnx, "Clip", onnx_input(onnx, 0), low, high), DTYPE_INT32));
}

/* x within 0 and the last number. */
static struct hlo lower_cut(struct stablehlo *hlo, struct hlo x) {
  const struct hlo last = hlo_number((double)node_int(hlo_node(hlo), "last"));
  return hlo_binary(hlo, "minimum", hlo_binary(hlo, "maximum", x, hlo_number(0)), last);
}

static void lower(struct stablehlo *hlo) {
  hlo_result(hlo, 0, lower_cut(hlo, hlo_input(hlo, 0)));
}

static const struct op_kind kind_index = {
    .name = "cast_index",
    .lower.write = lower,
    .onnx.write = write_onnx,
    .class = OP_ELEMENTWISE,
    .input_names = {"x"},
    .output_names = {"y"},
    .infer = infer,
    .types.autocast = {AUTOCAST_FLOAT32, AUTOCAST_AS_IS},
    .types.wide = true,
    .reference.apply = apply,
    .index.range = range,
    .index.limit = index_limit,
    .reference.evaluate = op_reference_elementwise,
};

/* ---- Targets ---- */

static double apply_target(const struct node *node, const double *x) {
  return x[0] == (double)node_int(node, "ignore") ? x[0] : apply(node, x);
}

static void range_target(const struct node *node, int64_t none, int64_t *low, int64_t *high) {
  int64_t ignore = node_int(node, "ignore");
  range(node, none, low, high);
  if (ignore == none) return;
  *low = ignore < *low ? ignore : *low;
  *high = ignore > *high ? ignore : *high;
}

static void lower_target(struct stablehlo *hlo) {
  const struct hlo x = hlo_input(hlo, 0);
  const struct hlo ignored = hlo_number((double)node_int(hlo_node(hlo), "ignore"));
  hlo_result(hlo, 0, hlo_select(hlo, hlo_compare(hlo, "EQ", x, ignored), x, lower_cut(hlo, x)));
}

static const struct op_kind kind_target = {
    .name = "cast_index_target",
    .lower.write = lower_target,
    .class = OP_ELEMENTWISE,
    .template_name = "cast_index",
    .input_names = {"x"},
    .output_names = {"y"},
    .infer = infer,
    .types.autocast = {AUTOCAST_FLOAT32, AUTOCAST_AS_IS},
    .types.wide = true,
    .reference.apply = apply_target,
    .index.range = range_target,
    .index.limit = index_limit,
    .index.ignores = true,
    .reference.evaluate = op_reference_elementwise,
};

/* ---- Functions ---- */

/* Whether float32 distinguishes the whole numbers below `below`. */
static bool check_below(struct builder *builder, const char *function, int64_t below) {
  if (below >= 1 && below <= most) return true;
  builder_error(builder,
                "%s: the numbers must be below 1 to %lld, which float32 holds exactly, not %lld; larger ones can come "
                "as the tokens of a token file",
                function, (long long)most, (long long)below);
  return false;
}

/* cast_index(x, below) */
static struct value *build_index(struct builder *builder, const struct argument *arguments, int count) {
  (void)count;
  struct value *x = op_tensor(arguments, 0);
  struct attribute last = attribute_int("last", arguments[1].integer - 1);
  if (!check_below(builder, "cast_index", arguments[1].integer)) return NULL;
  return builder_op(builder, "cast_index", &x, 1, &last, 1);
}

/* cast_target(x, classes, ignored) */
static struct value *build_target(struct builder *builder, const struct argument *arguments, int count) {
  (void)count;
  struct value *x = op_tensor(arguments, 0);
  int64_t ignored = arguments[2].integer;
  struct attribute attributes[] = {attribute_int("last", arguments[1].integer - 1), attribute_int("ignore", ignored)};
  if (!check_below(builder, "cast_target", arguments[1].integer)) return NULL;
  if (ignored >= -most && ignored <= most) return builder_op(builder, "cast_index_target", &x, 1, attributes, 2);
  builder_error(builder, "cast_target: the number to ignore must be within %lld and %lld, not %lld", (long long)-most,
                (long long)most, (long long)ignored);
  return NULL;
}

const struct op_file op_file_cast_index = {
    .name = "cast_index",
    .kinds = (const struct op_kind *const[]){&kind_index, &kind_target, NULL},
    .functions =
        (const struct op_function[]){{"cast_index", .build = build_index}, {"cast_target", .build = build_target}, {0}},
};
