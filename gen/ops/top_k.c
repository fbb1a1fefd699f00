/* The k largest of a row of the last dimension, of equal ones the first: their positions, from the largest down, and 1
 * in these positions, else 0. Without a gradient: they are constant but for the jumps; that of the numbers there goes
 * to their positions. */
#include "gen/onnx/onnx.h"
#include "gen/ops/support/support.h"
#include "gen/stablehlo/stablehlo.h"

static bool check_k(struct arena *arena, const struct node *node, const char **error) {
  if (!op_check_float(arena, node, 0, error) || !op_check_rank(arena, node, 0, 1, error)) return false;
  int64_t k = node_int(node, "k");
  if (k >= 1 && k <= op_columns(node->inputs[0]->shape)) return true;
  op_fail(arena, node, error, "the %lld largest of the last dimension of %s", (long long)k,
          op_operand_text(arena, node, 0));
  return false;
}

static int infer(struct arena *arena, const struct node *node, struct shape *shapes, enum dtype *dtypes,
                 const char **error) {
  struct shape x = node->inputs[0]->shape;
  if (!check_k(arena, node, error)) return 0;
  return op_result(shapes, dtypes, op_with_extent(x, x.rank - 1, node_int(node, "k")), DTYPE_INT32);
}

static int infer_mask(struct arena *arena, const struct node *node, struct shape *shapes, enum dtype *dtypes,
                      const char **error) {
  if (!check_k(arena, node, error)) return 0;
  return op_result(shapes, dtypes, node->inputs[0]->shape, node->inputs[0]->dtype);
}

/* How many of a row come before x[c]: larger ones, and equal ones to the left. */
static int64_t rank_of(const double *x, int64_t columns, int64_t c) {
  int64_t before = 0;
  for (int64_t i = 0; i < columns; i++) before += x[i] > x[c] || (x[i] == x[c] && i < c);
  return before;
}

static void reference(const struct node *node, const double *const *inputs, double *const *outputs) {
  int64_t columns = op_columns(node->inputs[0]->shape), rows = op_rows(node->inputs[0]->shape), k = node_int(node, "k");
  for (int64_t r = 0; r < rows; r++)
    for (int64_t c = 0; c < columns; c++) {
      int64_t rank = rank_of(inputs[0] + r * columns, columns, c);
      if (rank < k) outputs[0][r * k + rank] = (double)c;
    }
}

static void reference_mask(const struct node *node, const double *const *inputs, double *const *outputs) {
  int64_t columns = op_columns(node->inputs[0]->shape), rows = op_rows(node->inputs[0]->shape);
  for (int64_t r = 0; r < rows; r++)
    for (int64_t c = 0; c < columns; c++)
      outputs[0][r * columns + c] = rank_of(inputs[0] + r * columns, columns, c) < node_int(node, "k");
}

static double flops(const struct node *node) {
  return op_flops_each(node, 0, (double)op_columns(node->inputs[0]->shape));
}

static void range(const struct node *node, int64_t none, int64_t *low, int64_t *high) {
  (void)none;
  *low = 0;
  *high = op_columns(node->inputs[0]->shape) - 1;
}

static void write_onnx(struct onnx *onnx) {
  const struct onnx_extent k = onnx_fixed(onnx_int(onnx, "k"));
  const char *inputs[] = {onnx_input(onnx, 0), onnx_shape(onnx, &k, 1)};
  const char *chosen = onnx_node(onnx, "TopK", inputs, 2, NULL, 0, 2)[1];
  onnx_result(onnx, 0, onnx_cast(onnx, chosen, DTYPE_INT32));
}

/* The positions of the k largest [...][k]. */
static struct hlo lower_positions(struct stablehlo *hlo) {
  const struct hlo x = hlo_input(hlo, 0);
  return hlo_slice(hlo, hlo_order(hlo, x, true), x.shape.rank - 1, 0, node_int(hlo_node(hlo), "k"));
}

static void lower(struct stablehlo *hlo) {
  hlo_result(hlo, 0, lower_positions(hlo));
}

/* 1 where a position is one of them. */
static void lower_mask(struct stablehlo *hlo) {
  struct hlo chosen = lower_positions(hlo);
  const struct shape x = hlo_node(hlo)->inputs[0]->shape;
  struct shape each = chosen.shape, all = each;
  each.dim[each.rank++] = 1;
  all.dim[all.rank++] = x.dim[x.rank - 1];
  const struct hlo is_one = hlo_compare(hlo, "EQ", hlo_reshape(hlo, chosen, each), hlo_iota(hlo, all, x.rank, HLO_I32));
  hlo_result(hlo, 0,
             hlo_reduce(hlo, "add", hlo_convert(hlo, is_one, HLO_F32), shape_of(1, (int64_t)x.rank - 1), false));
}

static const struct op_kind kind = {
    .name = "top_k",
    .lower.write = lower,
    .onnx.write = write_onnx,
    .class = OP_KERNEL,
    .input_names = {"x"},
    .output_names = {"y"},
    .infer = infer,
    .sequence.along = op_along_rows,
    .cost.flops = flops,
    .index.range = range,
    .reference.evaluate = reference,
};

static void write_mask(struct onnx *onnx) {
  const struct onnx_extent k = onnx_fixed(onnx_int(onnx, "k"));
  const char *inputs[] = {onnx_input(onnx, 0), onnx_shape(onnx, &k, 1)};
  const char *chosen = onnx_node(onnx, "TopK", inputs, 2, NULL, 0, 2)[1];
  const char *zeros = onnx_binary(onnx, "Expand", onnx_float(onnx, 0), onnx_unary(onnx, "Shape", onnx_input(onnx, 0)));
  const char *ones = onnx_binary(onnx, "Expand", onnx_float(onnx, 1), onnx_unary(onnx, "Shape", chosen));
  const struct attribute last = attribute_int("axis", -1);
  onnx_result(onnx, 0, onnx_op(onnx, "ScatterElements", (const char *[]){zeros, chosen, ones}, 3, &last, 1));
}

static const struct op_kind kind_mask = {
    .name = "top_k_mask",
    .lower.write = lower_mask,
    .onnx.write = write_mask,
    .class = OP_KERNEL,
    .input_names = {"x"},
    .output_names = {"y"},
    .infer = infer_mask,
    .sequence.along = op_along_rows,
    .types.autocast = {AUTOCAST_AS_IS, AUTOCAST_FLOAT32},
    .cost.flops = flops,
    .reference.evaluate = reference_mask,
};

static struct value *with_k(struct builder *builder, const char *kind_name, const struct argument *arguments) {
  struct value *x = op_tensor(arguments, 0);
  struct attribute k = attribute_int("k", arguments[1].integer);
  return builder_op(builder, kind_name, &x, 1, &k, 1);
}

/* top_k_indices(x, k) */
static struct value *build_positions(struct builder *builder, const struct argument *arguments, int count) {
  (void)count;
  return with_k(builder, "top_k", arguments);
}

/* top_k_mask(x, k) */
static struct value *build_mask(struct builder *builder, const struct argument *arguments, int count) {
  (void)count;
  return with_k(builder, "top_k_mask", arguments);
}

/* top_k(x, k) */
static struct value *build(struct builder *builder, const struct argument *arguments, int count) {
  struct value *x = op_tensor(arguments, 0), *positions = build_positions(builder, arguments, count);
  return positions == NULL ? NULL : op_gather(builder, x, x->shape.rank - 1, positions);
}

const struct op_file op_file_top_k = {
    .name = "top_k",
    .kinds = (const struct op_kind *const[]){&kind, &kind_mask, NULL},
    .functions = (const struct op_function[]){{"top_k", .build = build},
                                              {"top_k_indices", .build = build_positions},
                                              {"top_k_mask", .build = build_mask},
                                              {0}},
};
