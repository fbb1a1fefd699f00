/* y[…, e, …] = x[…, index[…, e, …], …] along an axis, as torch.gather; the gradient adds dy to the positions that it
 * came from, as torch.scatter_add into zeros, whose own gradient is the gathering again. The index has x's shape but
 * along the axis. */
#include "gen/onnx/onnx.h"
#include "gen/ops/support/support.h"
#include "gen/stablehlo/stablehlo.h"

/* Input 1 is an index into input 0's axis, which has `extent` positions. */
static bool good_index(struct arena *arena, const struct node *node, const char **error) {
  int axis = (int)node_int(node, "axis");
  if (!op_check_float(arena, node, 0, error) || !op_check_dtype(arena, node, 1, DTYPE_INT32, error)) return false;
  struct shape x = node->inputs[0]->shape, index = node->inputs[1]->shape;
  if (axis < x.rank && index.rank == x.rank && shape_equal(op_with_extent(x, axis, 1), op_with_extent(index, axis, 1)))
    return true;
  op_fail(arena, node, error, "%s and %s differ in more than axis %d", op_operand_text(arena, node, 0),
          op_operand_text(arena, node, 1), axis);
  return false;
}

static int infer(struct arena *arena, const struct node *node, struct shape *shapes, enum dtype *dtypes,
                 const char **error) {
  if (!good_index(arena, node, error)) return 0;
  return op_result(shapes, dtypes, node->inputs[1]->shape, node->inputs[0]->dtype);
}

/* For each element of the index, of shape `few`: adds its value to where it points in `many`, or takes it from there.
 */
static void each(struct shape few, int axis, int64_t extent, const double *index, double *many, double *values,
                 bool add) {
  struct op_block block = op_block(few, axis);
  for (int64_t o = 0; o < block.outer; o++)
    for (int64_t e = 0; e < block.extent; e++)
      for (int64_t i = 0; i < block.inner; i++) {
        int64_t own = (o * block.extent + e) * block.inner + i;
        double *there = &many[(o * extent + (int64_t)index[own]) * block.inner + i];
        if (add)
          *there += values[own];
        else
          values[own] = *there;
      }
}

static void reference(const struct node *node, const double *const *inputs, double *const *outputs) {
  int axis = (int)node_int(node, "axis");
  each(node->inputs[1]->shape, axis, node->inputs[0]->shape.dim[axis], inputs[1], (double *)inputs[0], outputs[0],
       false);
}

static struct value *scatter(struct builder *builder, struct value *x, int64_t axis, struct value *index,
                             int64_t size) {
  struct attribute attributes[] = {attribute_int("axis", axis), attribute_int("size", size)};
  return builder_op(builder, "gather_backward", (struct value *[]){x, index}, 2, attributes, 2);
}

static void gradient(struct builder *builder, const struct node *node, struct value *const *dy, struct value **dx) {
  int64_t axis = node_int(node, "axis");
  dx[0] = scatter(builder, dy[0], axis, node->inputs[1], node->inputs[0]->shape.dim[axis]);
}

static int64_t index_limit(const struct node *node, int input) {
  return input == 1 ? node->inputs[0]->shape.dim[node_int(node, "axis")] : 0;
}

static void write_onnx(struct onnx *onnx) {
  const struct attribute axis = attribute_int("axis", onnx_int(onnx, "axis"));
  const char *inputs[] = {onnx_input(onnx, 0), onnx_input(onnx, 1)};
  onnx_result(onnx, 0, onnx_op(onnx, "GatherElements", inputs, 2, &axis, 1));
}

static void lower(struct stablehlo *hlo) {
  const int axis = (int)node_int(hlo_node(hlo), "axis");
  hlo_result(hlo, 0, hlo_take(hlo, hlo_raw_input(hlo, 0), hlo_raw_input(hlo, 1), axis));
}

static const struct op_kind kind = {
    .name = "gather",
    .lower.write = lower,
    .onnx.write = write_onnx,
    .class = OP_KERNEL,
    .input_names = {"x", "index"},
    .output_names = {"y"},
    .infer = infer,
    .sequence.along = op_along_others,
    .gradient = gradient,
    .cost.flops = op_flops_none,
    .index.limit = index_limit,
    .reference.evaluate = reference,
};

/* ---- Backward: dx [.., size, ..] is the sum of dy over the positions that point to it ---- */

static int infer_backward(struct arena *arena, const struct node *node, struct shape *shapes, enum dtype *dtypes,
                          const char **error) {
  if (!good_index(arena, node, error)) return 0;
  if (!op_check_shape(arena, node, 1, node->inputs[0]->shape, "a position for each element", error)) return 0;
  struct shape shape = op_with_extent(node->inputs[0]->shape, (int)node_int(node, "axis"), node_int(node, "size"));
  return op_result(shapes, dtypes, shape, node->inputs[0]->dtype);
}

static void reference_backward(const struct node *node, const double *const *inputs, double *const *outputs) {
  for (int64_t i = 0; i < shape_count(node->outputs[0]->shape); i++) outputs[0][i] = 0;
  each(node->inputs[1]->shape, (int)node_int(node, "axis"), node_int(node, "size"), inputs[1], outputs[0],
       (double *)inputs[0], true);
}

static void gradient_backward(struct builder *builder, const struct node *node, struct value *const *dy,
                              struct value **dx) {
  dx[0] = op_gather(builder, dy[0], (int)node_int(node, "axis"), node->inputs[1]);
}

static int64_t index_limit_backward(const struct node *node, int input) {
  return input == 1 ? node_int(node, "size") : 0;
}

static void lower_backward(struct stablehlo *hlo) {
  const struct node *node = hlo_node(hlo);
  hlo_result(
      hlo, 0,
      hlo_put(hlo, node->outputs[0]->shape, hlo_raw_input(hlo, 1), hlo_input(hlo, 0), (int)node_int(node, "axis")));
}

static const struct op_kind kind_backward = {
    .name = "gather_backward",
    .lower.write = lower_backward,
    .class = OP_KERNEL,
    .input_names = {"dy", "index"},
    .output_names = {"dx"},
    .infer = infer_backward,
    .gradient = gradient_backward,
    .memory.accumulates = 1,
    .cost.flops_each = 1,
    .index.limit = index_limit_backward,
    .reference.evaluate = reference_backward,
};

/* ---- Functions ---- */

/* gather(x, axis, index) */
static struct value *build(struct builder *builder, const struct argument *arguments, int count) {
  (void)count;
  struct value *x = op_tensor(arguments, 0);
  int axis = x != NULL ? op_axis(builder, "gather", x, &arguments[1]) : -1;
  return axis < 0 ? NULL : op_gather(builder, x, axis, op_tensor(arguments, 2));
}

/* scatter_add(x, axis, index, size) */
static struct value *build_scatter(struct builder *builder, const struct argument *arguments, int count) {
  (void)count;
  struct value *x = op_tensor(arguments, 0);
  int axis = x != NULL ? op_axis(builder, "scatter_add", x, &arguments[1]) : -1;
  if (axis < 0) return NULL;
  if (arguments[3].integer >= 1) return scatter(builder, x, axis, op_tensor(arguments, 2), arguments[3].integer);
  builder_error(builder, "scatter_add: the result's extent must be at least 1, not %lld",
                (long long)arguments[3].integer);
  return NULL;
}

const struct op_file op_file_gather = {
    .name = "gather",
    .kinds = (const struct op_kind *const[]){&kind, &kind_backward, NULL},
    .functions = (const struct op_function[]){{"gather", .build = build}, {"scatter_add", .build = build_scatter}, {0}},
};
