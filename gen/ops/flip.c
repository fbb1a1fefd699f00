/* y[i] = x[n - 1 - i] along an axis; dx is the same of dy. */
#include <string.h>

#include "gen/onnx/onnx.h"
#include "gen/ops/support/support.h"
#include "gen/stablehlo/stablehlo.h"

static void reference(const struct node *node, const double *const *inputs, double *const *outputs) {
  struct op_block block = op_block(node->inputs[0]->shape, (int)node_int(node, "axis"));
  for (int64_t o = 0; o < block.outer; o++)
    for (int64_t e = 0; e < block.extent; e++)
      memcpy(outputs[0] + (o * block.extent + e) * block.inner,
             inputs[0] + ((o + 1) * block.extent - 1 - e) * block.inner, (size_t)block.inner * sizeof(double));
}

static int infer(struct arena *arena, const struct node *node, struct shape *shapes, enum dtype *dtypes,
                 const char **error) {
  (void)arena;
  (void)error;
  return op_result(shapes, dtypes, node->inputs[0]->shape, node->inputs[0]->dtype);
}

static struct value *flip(struct builder *builder, struct value *x, int64_t axis) {
  struct attribute attribute = attribute_int("axis", axis);
  return builder_op(builder, "flip", &x, 1, &attribute, 1);
}

static void gradient(struct builder *builder, const struct node *node, struct value *const *dy, struct value **dx) {
  dx[0] = flip(builder, dy[0], node_int(node, "axis"));
}

static void write_onnx(struct onnx *onnx) {
  const struct onnx_extent last = onnx_fixed(-1), end = onnx_fixed(INT64_MIN),
                           axis = onnx_fixed(onnx_int(onnx, "axis"));
  const char *back = onnx_shape(onnx, &last, 1);
  const char *inputs[] = {onnx_input(onnx, 0), back, onnx_shape(onnx, &end, 1), onnx_shape(onnx, &axis, 1), back};
  onnx_result(onnx, 0, onnx_op(onnx, "Slice", inputs, 5, NULL, 0));
}

static void lower(struct stablehlo *hlo) {
  hlo_result(hlo, 0, hlo_reverse(hlo, hlo_raw_input(hlo, 0), (int)node_int(hlo_node(hlo), "axis")));
}

static const struct op_kind kind = {
    .name = "flip",
    .lower.write = lower,
    .onnx.write = write_onnx,
    .class = OP_KERNEL,
    .input_names = {"x"},
    .output_names = {"y"},
    .infer = infer,
    .sequence.along = op_along_others,
    .gradient = gradient,
    .cost.flops = op_flops_none,
    .reference.evaluate = reference,
};

/* flip(x, axis) */
static struct value *build(struct builder *builder, const struct argument *arguments, int count) {
  (void)count;
  struct value *x = op_tensor(arguments, 0);
  int axis = x != NULL ? op_axis(builder, "flip", x, &arguments[1]) : -1;
  return axis < 0 ? NULL : flip(builder, x, axis);
}

const struct op_file op_file_flip = {
    .name = "flip",
    .kinds = (const struct op_kind *const[]){&kind, NULL},
    .functions = (const struct op_function[]){{"flip", .build = build}, {0}},
};
