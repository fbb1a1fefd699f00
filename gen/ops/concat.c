/* y = the inputs one after the other along an axis; the gradient of an input is its part of dy. It has no kernel:
 * producers write their part of y. */
#include <string.h>

#include "gen/onnx/onnx.h"
#include "gen/ops/support/support.h"
#include "gen/stablehlo/stablehlo.h"

static int infer(struct arena *arena, const struct node *node, struct shape *shapes, enum dtype *dtypes,
                 const char **error) {
  struct shape shape = node->inputs[0]->shape;
  int64_t axis = node_int(node, "axis"), extent = 0;
  if (axis < 0 || axis >= shape.rank)
    return op_fail(arena, node, error, "%s has no axis %lld", op_operand_text(arena, node, 0), (long long)axis);
  for (int i = 0; i < node->n_inputs; i++) {
    struct shape other = node->inputs[i]->shape;
    if (!op_check_dtype(arena, node, i, node->inputs[0]->dtype, error)) return 0;
    if (other.rank != shape.rank || !shape_equal(op_with_extent(other, (int)axis, shape.dim[axis]), shape))
      return op_fail(arena, node, error, "%s and %s differ in more than axis %lld", op_operand_text(arena, node, 0),
                     op_operand_text(arena, node, i), (long long)axis);
    extent += other.dim[axis];
  }
  return op_result(shapes, dtypes, op_with_extent(shape, (int)axis, extent), node->inputs[0]->dtype);
}

/* Where input `index` starts along the axis. */
static int64_t start_of(const struct node *node, int index) {
  int64_t axis = node_int(node, "axis"), start = 0;
  for (int i = 0; i < index; i++) start += node->inputs[i]->shape.dim[axis];
  return start;
}

static void reference(const struct node *node, const double *const *inputs, double *const *outputs) {
  int axis = (int)node_int(node, "axis");
  struct op_block all = op_block(node->outputs[0]->shape, axis);
  for (int i = 0; i < node->n_inputs; i++) {
    int64_t size = node->inputs[i]->shape.dim[axis] * all.inner, start = start_of(node, i) * all.inner;
    for (int64_t o = 0; o < all.outer; o++)
      memcpy(outputs[0] + o * all.extent * all.inner + start, inputs[i] + o * size, (size_t)size * sizeof(double));
  }
}

static void gradient(struct builder *builder, const struct node *node, struct value *const *dy, struct value **dx) {
  int axis = (int)node_int(node, "axis");
  for (int i = 0; i < node->n_inputs; i++)
    if (builder_wants_gradient(builder, node->inputs[i]))
      dx[i] = op_slice(builder, dy[0], axis, start_of(node, i), node->inputs[i]->shape.dim[axis]);
}

static bool part(const struct node *node, int index, const int64_t *out_strides, int64_t *offset, int64_t *in_strides) {
  *offset = start_of(node, index) * out_strides[node_int(node, "axis")];
  for (int i = 0; i < node->outputs[0]->shape.rank; i++) in_strides[i] = out_strides[i];
  return true;
}

/* One input has positions; those in front of it are before the first one, and those after it come to an end that is not
 * there yet. */
static struct value *incremental(struct builder *builder, const struct node *node, struct new_positions *new) {
  int moving = -1, count = 0;
  for (int i = 0; i < node->n_inputs; i++) {
    if (new->timelines[i].axis == AXIS_WHOLE) continue;
    moving = i;
    count++;
  }
  if (count != 1) return NULL;
  new->timeline = new->timelines[moving];
  if (!op_is_plain(new->timeline)) return NULL;
  if (moving == 0) return new->inputs[0];
  struct value *first = new->inputs[0];
  if (moving > 1) first = builder_op(builder, "concat", new->inputs, moving, node->attributes, node->n_attributes);
  return op_conv_cache(builder, new, moving, start_of(node, moving), first);
}

static void write_onnx(struct onnx *onnx) {
  const char **inputs = arena_alloc(onnx_arena(onnx), (size_t)onnx_n_inputs(onnx) * sizeof *inputs);
  const struct attribute axis = attribute_int("axis", onnx_int(onnx, "axis"));
  for (int i = 0; i < onnx_n_inputs(onnx); i++) inputs[i] = onnx_input(onnx, i);
  onnx_result(onnx, 0, onnx_op(onnx, "Concat", inputs, onnx_n_inputs(onnx), &axis, 1));
}

static void lower(struct stablehlo *hlo) {
  const struct node *node = hlo_node(hlo);
  struct hlo *parts = arena_alloc(hlo_arena(hlo), (size_t)node->n_inputs * sizeof *parts);
  for (int i = 0; i < node->n_inputs; i++) parts[i] = hlo_raw_input(hlo, i);
  hlo_result(hlo, 0, hlo_concat(hlo, parts, node->n_inputs, (int)node_int(node, "axis")));
}

static const struct op_kind kind = {
    .name = "concat",
    .lower.write = lower,
    .onnx.write = write_onnx,
    .class = OP_PARTS,
    .output_names = {"y"},
    .infer = infer,
    .sequence.along = op_along_others,
    .sequence.incremental = incremental,
    .gradient = gradient,
    .layout.part = part,
    .types.autocast = {AUTOCAST_PROMOTE, AUTOCAST_PROMOTE},
    .cost.flops = op_flops_none,
    .reference.evaluate = reference,
};

/* concat_of(axis, n, tensors…) */
static struct value *build(struct builder *builder, const struct argument *arguments, int count) {
  int n = count - 2;
  if (n < 1 || arguments[1].integer != n) {
    builder_error(builder, "concat: %lld tensors announced but %d given", (long long)arguments[1].integer, n);
    return NULL;
  }
  struct value **inputs = arena_alloc(builder_arena(builder), (size_t)n * sizeof *inputs);
  for (int i = 0; i < n; i++) {
    inputs[i] = arguments[2 + i].kind == ARGUMENT_TENSOR ? op_tensor(arguments, 2 + i) : NULL;
    if (arguments[2 + i].kind != ARGUMENT_TENSOR) builder_error(builder, "concat: argument %d is not a tensor", i + 2);
    if (inputs[i] == NULL) return NULL;
  }
  int axis = op_axis(builder, "concat", inputs[0], &arguments[0]);
  if (axis < 0 || n == 1) return axis < 0 ? NULL : inputs[0];
  struct attribute attribute = attribute_int("axis", axis);
  return builder_op(builder, "concat", inputs, n, &attribute, 1);
}

const struct op_file op_file_concat = {
    .name = "concat",
    .kinds = (const struct op_kind *const[]){&kind, NULL},
    .functions = (const struct op_function[]){{"concat_of", .build = build}, {0}},
};
