/* y = x P(x), dx = dy (P(x) + x p(x)), P(x) = (1 + erf(x / sqrt(2))) / 2 and p its derivative e^(-x^2 / 2) / sqrt(2 pi)
 * (Hendrycks, Gimpel, arXiv:1606.08415, section 2). */
#include <math.h>

#include "gen/ops/support/elementwise.h"
#include "gen/stablehlo/stablehlo.h"

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

static struct hlo lower_cdf(struct stablehlo *hlo, struct hlo x) {
  const struct hlo erf = hlo_unary(hlo, "erf", hlo_mul(hlo, x, hlo_number(sqrt(0.5))));
  return hlo_mul(hlo, hlo_add(hlo, erf, hlo_number(1)), hlo_number(0.5));
}

static void lower_slope(struct stablehlo *hlo) {
  const struct hlo dy = hlo_input(hlo, 0), x = hlo_input(hlo, 1);
  const struct hlo square = hlo_mul(hlo, hlo_mul(hlo, x, x), hlo_number(-0.5));
  const struct hlo density = hlo_mul(hlo, hlo_unary(hlo, "exponential", square), hlo_number(normal_density(0)));
  const struct hlo slope = hlo_add(hlo, lower_cdf(hlo, x), hlo_mul(hlo, x, density));
  hlo_result(hlo, 0, hlo_mul(hlo, dy, slope));
}

static const struct op_kind kind_slope = {
    OP_SLOPE("x"),           .name = "gelu_backward",   .lower.write = lower_slope,
    .template_name = "gelu", .reference.scalar = slope,
};

static void lower(struct stablehlo *hlo) {
  const struct hlo x = hlo_input(hlo, 0);
  hlo_result(hlo, 0, hlo_mul(hlo, x, lower_cdf(hlo, x)));
}

static const struct op_kind kind = {
    OP_UNARY,
    .name = "gelu",
    .lower.write = lower,
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
