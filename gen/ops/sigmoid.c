/* y = 1 / (1 + e^-x), dx = dy y (1 - y). */
#include <math.h>

#include "gen/ops/support/elementwise.h"
#include "gen/stablehlo/stablehlo.h"

static double scalar(double x) {
  return 1 / (1 + exp(-x));
}

static double slope(double y) {
  return y * (1 - y);
}

static void lower_slope(struct stablehlo *hlo) {
  const struct hlo dy = hlo_input(hlo, 0), y = hlo_input(hlo, 1);
  const struct hlo slope = hlo_mul(hlo, y, hlo_sub(hlo, hlo_number(1), y));
  hlo_result(hlo, 0, hlo_mul(hlo, dy, slope));
}

static const struct op_kind kind_slope = {
    OP_SLOPE("y"),
    .name = "sigmoid_backward",
    .lower.write = lower_slope,
    .template_name = "sigmoid",
    .reference.scalar = slope,
};

static const struct op_kind kind = {
    OP_UNARY,
    .name = "sigmoid",
    .lower.operation = "logistic",
    .onnx.operator= "Sigmoid",
    .reference.scalar = scalar,
    .gradient = op_gradient_of_y,
    .slope = &kind_slope,
};

const struct op_file op_file_sigmoid = {
    .name = "sigmoid",
    .kinds = (const struct op_kind *const[]){&kind, &kind_slope, NULL},
    .functions = (const struct op_function[]){{"sigmoid", .kind = &kind}, {0}},
};
