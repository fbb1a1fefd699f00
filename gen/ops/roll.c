/* y[(i + shift) mod n] = x[i] along an axis; dx is dy rolled by n - shift. The attribute is from 1 to n - 1. */
#include <string.h>

#include "gen/onnx/onnx.h"
#include "gen/ops/support/support.h"
#include "gen/stablehlo/stablehlo.h"

static void reference(const struct node *node, const double *const *inputs, double *const *outputs) {
  struct op_block block = op_block(node->inputs[0]->shape, (int)node_int(node, "axis"));
  int64_t shift = node_int(node, "shift");
  for (int64_t o = 0; o < block.outer; o++)
    for (int64_t e = 0; e < block.extent; e++)
      memcpy(outputs[0] + (o * block.extent + (e + shift) % block.extent) * block.inner,
             inputs[0] + (o * block.extent + e) * block.inner, (size_t)block.inner * sizeof(double));
}

/* By any number of positions, also negative ones. */
static struct value *roll(struct builder *builder, struct value *x, int axis, int64_t shift) {
  int64_t extent = x->shape.dim[axis];
  shift = (shift % extent + extent) % extent;
  if (shift == 0) return x;
  struct attribute attributes[] = {attribute_int("axis", axis), attribute_int("shift", shift)};
  return builder_op(builder, "roll", &x, 1, attributes, 2);
}

static void gradient(struct builder *builder, const struct node *node, struct value *const *dy, struct value **dx) {
  dx[0] = roll(builder, dy[0], (int)node_int(node, "axis"), -node_int(node, "shift"));
}

static void write_onnx(struct onnx *onnx) {
  const int axis = (int)onnx_int(onnx, "axis");
  const struct onnx_extent extent = onnx_dim(onnx, 0, axis), shift = onnx_int_extent(onnx, "shift");
  const struct onnx_extent middle = onnx_plus(extent, onnx_times(shift, -1));
  const char *parts[] = {onnx_slice(onnx, onnx_input(onnx, 0), axis, middle, extent),
                         onnx_slice(onnx, onnx_input(onnx, 0), axis, onnx_fixed(0), middle)};
  const struct attribute along = attribute_int("axis", axis);
  onnx_result(onnx, 0, onnx_op(onnx, "Concat", parts, 2, &along, 1));
}

static void lower(struct stablehlo *hlo) {
  const struct hlo x = hlo_raw_input(hlo, 0);
  const int axis = (int)node_int(hlo_node(hlo), "axis");
  const int64_t shift = node_int(hlo_node(hlo), "shift"), rest = x.shape.dim[axis] - shift;
  const struct hlo parts[] = {hlo_slice(hlo, x, axis, rest, shift), hlo_slice(hlo, x, axis, 0, rest)};
  hlo_result(hlo, 0, hlo_concat(hlo, parts, 2, axis));
}

static const struct op_kind kind = {
    .name = "roll",
    .lower.write = lower,
    .onnx.write = write_onnx,
    .class = OP_KERNEL,
    .input_names = {"x"},
    .output_names = {"y"},
    .infer = op_infer_like,
    .sequence.along = op_along_others,
    .gradient = gradient,
    .cost.flops = op_flops_none,
    .reference.evaluate = reference,
};

/* roll(x, axis, shift) */
static struct value *build(struct builder *builder, const struct argument *arguments, int count) {
  (void)count;
  struct value *x = op_tensor(arguments, 0);
  int axis = x != NULL ? op_axis(builder, "roll", x, &arguments[1]) : -1;
  return axis < 0 ? NULL : roll(builder, x, axis, arguments[2].integer);
}

const struct op_file op_file_roll = {
    .name = "roll",
    .kinds = (const struct op_kind *const[]){&kind, NULL},
    .functions = (const struct op_function[]){{"roll", .build = build}, {0}},
};
