/* y = x P(x), dx = dy (P(x) + x p(x)), P(x) = (1 + erf(x / sqrt(2))) / 2 and p its derivative e^(-x^2 / 2) / sqrt(2 pi)
 * (Hendrycks, Gimpel, arXiv:1606.08415, section 2). */
#include <math.h>

#include "gen/ops/support/elementwise.h"

static double normal_cdf(double x) {
  return (1 + erf(x / sqrt(2))) / 2;
}

static double normal_density(double x) {
  return exp(-x * x / 2) / sqrt(8 * atan(1));
}

static double scalar(double x) {
  return x * normal_cdf(x);
}

static double slope(double x) {
  return normal_cdf(x) + x * normal_density(x);
}

static const struct op_kind kind_slope = {
    OP_SLOPE("x"),
    .name = "gelu_backward",
    .template_name = "gelu",
    .reference.scalar = slope,
};

static const struct op_kind kind = {
    OP_UNARY,
    .name = "gelu",
    .onnx.operator= "Gelu",
    .reference.scalar = scalar,
    .gradient = op_gradient_of_x,
    .slope = &kind_slope,
};

const struct op_file op_file_gelu = {
    .name = "gelu",
    .kinds = (const struct op_kind *const[]){&kind, &kind_slope, NULL},
    .functions = (const struct op_function[]){{"gelu", .kind = &kind}, {0}},
};
