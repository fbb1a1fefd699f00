/* y = max(x, 0), dx = dy where x > 0, else 0. */
#include "gen/ops/support/elementwise.h"

static double scalar(double x) {
  return x > 0 ? x : 0;
}

static double slope(double x) {
  return x > 0 ? 1 : 0;
}

static const struct op_kind kind_slope = {OP_SLOPE("x"), .name = "relu_backward", .template_name = "relu",
                                          .reference.scalar = slope};

static const struct op_kind kind = {
    OP_UNARY,
    .name = "relu",
    .onnx.operator= "Relu",
    .reference.scalar = scalar,
    .gradient = op_gradient_of_x,
    .slope = &kind_slope,
};

const struct op_file op_file_relu = {
    .name = "relu",
    .kinds = (const struct op_kind *const[]){&kind, &kind_slope, NULL},
    .functions = (const struct op_function[]){{"relu", .kind = &kind}, {0}},
};
