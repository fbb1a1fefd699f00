/* y = x repeated along the dimensions that NumPy's rule adds or widens, up to the shape `dims`; dx = the sum of dy over
 * them. */
#include "gen/onnx/onnx.h"
#include "gen/ops/support/elementwise.h"
#include "gen/stablehlo/stablehlo.h"

static int infer(struct arena *arena, const struct node *node, struct shape *shapes, enum dtype *dtypes,
                 const char **error) {
  struct shape dims = node_ints(node, "dims"), both;
  if (!shape_broadcast(node->inputs[0]->shape, dims, &both) || !shape_equal(both, dims))
    return op_fail(arena, node, error, "%s does not broadcast to %s", op_operand_text(arena, node, 0),
                   shape_text(arena, dims));
  return op_result(shapes, dtypes, dims, node->inputs[0]->dtype);
}

static double scalar(double x) {
  return x;
}

static void gradient(struct builder *builder, const struct node *node, struct value *const *dy, struct value **dx) {
  dx[0] = op_unbroadcast(builder, dy[0], node->inputs[0]->shape);
}

static void write_onnx(struct onnx *onnx) {
  struct onnx_extent extents[MAX_RANK];
  for (int i = 0; i < onnx_result_rank(onnx); i++) extents[i] = onnx_result_dim(onnx, i);
  onnx_ignore(onnx, "dims");
  onnx_result(onnx, 0,
              onnx_binary(onnx, "Expand", onnx_input(onnx, 0), onnx_shape(onnx, extents, onnx_result_rank(onnx))));
}

static void lower(struct stablehlo *hlo) {
  hlo_result(hlo, 0, hlo_broadcast(hlo, hlo_raw_input(hlo, 0), node_ints(hlo_node(hlo), "dims")));
}

static const struct op_kind kind = {
    .name = "broadcast",
    .lower.write = lower,
    .onnx.write = write_onnx,
    .class = OP_ELEMENTWISE,
    .input_names = {"x"},
    .output_names = {"y"},
    .infer = infer,
    .sequence.extents = "dims",
    .gradient = gradient,
    .cost.flops = op_flops_none,
    .reference.scalar = scalar,
    .reference.evaluate = op_reference_elementwise,
};

const struct op_file op_file_broadcast = {
    .name = "broadcast",
    .kinds = (const struct op_kind *const[]){&kind, NULL},
};
