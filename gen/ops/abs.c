/* y = |x|, dx = dy times the sign of x: 0 at 0, as PyTorch. */
#include <math.h>

#include "gen/ops/support/elementwise.h"
#include "gen/stablehlo/stablehlo.h"

static double slope(double x) {
  return x > 0 ? 1 : x < 0 ? -1 : 0;
}

static void lower_slope(struct stablehlo *hlo) {
  const struct hlo dy = hlo_input(hlo, 0), x = hlo_input(hlo, 1);
  hlo_result(hlo, 0, hlo_mul(hlo, dy, hlo_unary(hlo, "sign", x)));
}

static const struct op_kind kind_slope = {
    OP_SLOPE("x"),          .name = "abs_backward",    .lower.write = lower_slope,
    .template_name = "abs", .reference.scalar = slope,
};

static const struct op_kind kind = {
    OP_UNARY,
    .name = "abs",
    .lower.operation = "abs",
    .onnx.operator= "Abs",
    .reference.scalar = fabs,
    .gradient = op_gradient_of_x,
    .slope = &kind_slope,
};

const struct op_file op_file_abs = {
    .name = "abs",
    .kinds = (const struct op_kind *const[]){&kind, &kind_slope, NULL},
    .functions = (const struct op_function[]){{"abs_of", .kind = &kind}, {0}},
};
