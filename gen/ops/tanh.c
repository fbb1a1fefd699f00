/* y = tanh(x), dx = dy (1 - y^2). */
#include <math.h>

#include "gen/ops/support/elementwise.h"
#include "gen/stablehlo/stablehlo.h"

static double slope(double y) {
  return 1 - y * y;
}

static void lower_slope(struct stablehlo *hlo) {
  const struct hlo dy = hlo_input(hlo, 0), y = hlo_input(hlo, 1);
  hlo_result(hlo, 0, hlo_mul(hlo, dy, hlo_sub(hlo, hlo_number(1), hlo_mul(hlo, y, y))));
}

static const struct op_kind kind_slope = {
    OP_SLOPE("y"),           .name = "tanh_backward",   .lower.write = lower_slope,
    .template_name = "tanh", .reference.scalar = slope,
};

static const struct op_kind kind = {
    OP_UNARY,
    .ranks.pads = true,
    .name = "tanh",
    .lower.operation = "tanh",
    .onnx.operator= "Tanh",
    .reference.scalar = tanh,
    .gradient = op_gradient_of_y,
    .slope = &kind_slope,
};

const struct op_file op_file_tanh = {
    .name = "tanh",
    .kinds = (const struct op_kind *const[]){&kind, &kind_slope, NULL},
    .functions = (const struct op_function[]){{"tanh_of", .kind = &kind}, {0}},
};
