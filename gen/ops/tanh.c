/* y = tanh(x), dx = dy (1 - y^2). */
#include <math.h>

#include "gen/ops/support/elementwise.h"

static double slope(double y) {
  return 1 - y * y;
}

static const struct op_kind kind_slope = {
    OP_SLOPE("y"),
    .name = "tanh_backward",
    .template_name = "tanh",
    .reference.scalar = slope,
};

static const struct op_kind kind = {
    OP_UNARY,
    .ranks.pads = true,
    .name = "tanh",
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
