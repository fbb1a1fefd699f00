/* y = 1 / sqrt(x), dx = -dy y^3 / 2. */
#include <math.h>

#include "gen/onnx/onnx.h"
#include "gen/ops/support/elementwise.h"

static double scalar(double x) {
  return 1 / sqrt(x);
}

static void gradient(struct builder *builder, const struct node *node, struct value *const *dy, struct value **dx) {
  struct value *y = node->outputs[0], *cube = op_mul(builder, y, op_square(builder, y));
  dx[0] = op_mul(builder, op_scale(builder, dy[0], -0.5), cube);
}

static void write_onnx(struct onnx *onnx) {
  onnx_result(onnx, 0, onnx_unary(onnx, "Reciprocal", onnx_unary(onnx, "Sqrt", onnx_input(onnx, 0))));
}

static const struct op_kind kind = {
    OP_UNARY,
    .name = "rsqrt",
    .lower.operation = "rsqrt",
    .onnx.write = write_onnx,
    .reference.scalar = scalar,
    .gradient = gradient,
    .types.autocast = {AUTOCAST_AS_IS, AUTOCAST_FLOAT32},
};

const struct op_file op_file_rsqrt = {
    .name = "rsqrt",
    .kinds = (const struct op_kind *const[]){&kind, NULL},
    .functions = (const struct op_function[]){{"rsqrt_of", .kind = &kind}, {0}},
};
