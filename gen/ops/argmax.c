/* y = the position of the largest along an axis, which is then gone; of equal ones the first. Without a gradient. The
 * largest value is read at that position, so that its gradient goes to the first of equal ones, as torch.max's along an
 * axis (torch.amax shares it among them). */
#include "gen/onnx/onnx.h"
#include "gen/ops/support/support.h"
#include "gen/stablehlo/stablehlo.h"

static struct shape without_axis(struct shape shape, int axis) {
  for (int i = axis; i + 1 < shape.rank; i++) shape.dim[i] = shape.dim[i + 1];
  shape.rank--;
  return shape;
}

static int infer(struct arena *arena, const struct node *node, struct shape *shapes, enum dtype *dtypes,
                 const char **error) {
  if (!op_check_float(arena, node, 0, error)) return 0;
  return op_result(shapes, dtypes, without_axis(node->inputs[0]->shape, (int)node_int(node, "axis")), DTYPE_INT32);
}

static void reference(const struct node *node, const double *const *inputs, double *const *outputs) {
  struct op_block block = op_block(node->inputs[0]->shape, (int)node_int(node, "axis"));
  for (int64_t o = 0; o < block.outer; o++)
    for (int64_t i = 0; i < block.inner; i++) {
      const double *x = inputs[0] + o * block.extent * block.inner + i;
      int64_t best = 0;
      for (int64_t e = 1; e < block.extent; e++)
        if (x[e * block.inner] > x[best * block.inner]) best = e;
      outputs[0][o * block.inner + i] = (double)best;
    }
}

static void range(const struct node *node, int64_t none, int64_t *low, int64_t *high) {
  (void)none;
  *low = 0;
  *high = node->inputs[0]->shape.dim[node_int(node, "axis")] - 1;
}

static void write_onnx(struct onnx *onnx) {
  const struct attribute along[] = {attribute_int("axis", onnx_int(onnx, "axis")), attribute_int("keepdims", 0)};
  const char *x = onnx_input(onnx, 0);
  onnx_result(onnx, 0, onnx_cast(onnx, onnx_op(onnx, "ArgMax", &x, 1, along, 2), DTYPE_INT32));
}

static void lower(struct stablehlo *hlo) {
  hlo_result(hlo, 0, hlo_argmax(hlo, hlo_input(hlo, 0), (int)node_int(hlo_node(hlo), "axis")));
}

static const struct op_kind kind = {
    .name = "argmax",
    .lower.write = lower,
    .onnx.write = write_onnx,
    .class = OP_KERNEL,
    .input_names = {"x"},
    .output_names = {"y"},
    .infer = infer,
    .sequence.along = op_along_others,
    .cost.flops_each = 1,
    .index.range = range,
    .reference.evaluate = reference,
};

/* The position along argument 1's axis; NULL after an error. */
static struct value *position(struct builder *builder, const char *function, struct value *x,
                              const struct argument *arguments) {
  int axis = x != NULL ? op_axis(builder, function, x, &arguments[1]) : -1;
  struct attribute attribute = attribute_int("axis", axis);
  return axis < 0 ? NULL : builder_op(builder, "argmax", &x, 1, &attribute, 1);
}

/* argmax(x, axis) */
static struct value *build(struct builder *builder, const struct argument *arguments, int count) {
  (void)count;
  return position(builder, "argmax", op_tensor(arguments, 0), arguments);
}

static struct value *largest(struct builder *builder, const char *function, struct value *x,
                             const struct argument *arguments) {
  struct value *at = position(builder, function, x, arguments);
  if (at == NULL) return NULL;
  struct shape gone = at->shape;
  int axis = op_axis(builder, function, x, &arguments[1]);
  at = op_reshape(builder, at, op_with_extent(x->shape, axis, 1));
  return op_reshape(builder, op_gather(builder, x, axis, at), gone);
}

/* max_along(x, axis), min_along(x, axis) */
static struct value *build_max(struct builder *builder, const struct argument *arguments, int count) {
  (void)count;
  return largest(builder, "max_along", op_tensor(arguments, 0), arguments);
}

static struct value *build_min(struct builder *builder, const struct argument *arguments, int count) {
  (void)count;
  return op_neg(builder, largest(builder, "min_along", op_neg(builder, op_tensor(arguments, 0)), arguments));
}

const struct op_file op_file_argmax = {
    .name = "argmax",
    .kinds = (const struct op_kind *const[]){&kind, NULL},
    .functions =
        (const struct op_function[]){
            {"argmax", .build = build}, {"max_along", .build = build_max}, {"min_along", .build = build_min}, {0}},
};
