/* y = x^2, dx = 2 x dy. PyTorch's square is a pow, so CUDA's autocast runs it in float32. */
#include "gen/onnx/onnx.h"
#include "gen/ops/support/elementwise.h"
#include "gen/stablehlo/stablehlo.h"

static double scalar(double x) {
  return x * x;
}

static void gradient(struct builder *builder, const struct node *node, struct value *const *dy, struct value **dx) {
  dx[0] = op_mul(builder, dy[0], op_scale(builder, node->inputs[0], 2));
}

static void write_onnx(struct onnx *onnx) {
  onnx_result(onnx, 0, onnx_binary(onnx, "Mul", onnx_input(onnx, 0), onnx_input(onnx, 0)));
}

static void lower(struct stablehlo *hlo) {
  const struct hlo x = hlo_input(hlo, 0);
  hlo_result(hlo, 0, hlo_mul(hlo, x, x));
}

static const struct op_kind kind = {
    OP_UNARY,
    .name = "square",
    .lower.write = lower,
    .onnx.write = write_onnx,
    .reference.scalar = scalar,
    .gradient = gradient,
    .types.autocast = {AUTOCAST_AS_IS, AUTOCAST_FLOAT32},
};

const struct op_file op_file_square = {
    .name = "square",
    .kinds = (const struct op_kind *const[]){&kind, NULL},
    .functions = (const struct op_function[]){{"square", .kind = &kind}, {0}},
};
