/* y = x s(x), dx = dy s(x) (1 + x (1 - s(x))), s(x) = 1 / (1 + e^-x)
 * (Elfwing, Uchibe, Doya, arXiv:1702.03118, eq. 5 and 7). */
#include <math.h>

#include "gen/onnx/onnx.h"
#include "gen/ops/support/elementwise.h"
#include "gen/stablehlo/stablehlo.h"

static double sigma(double x) {
  return 1 / (1 + exp(-x));
}

static double scalar(double x) {
  return x * sigma(x);
}

static double slope(double x) {
  return sigma(x) * (1 + x * (1 - sigma(x)));
}

static void lower_slope(struct stablehlo *hlo) {
  const struct hlo dy = hlo_input(hlo, 0), x = hlo_input(hlo, 1);
  const struct hlo one = hlo_number(1), sigma = hlo_unary(hlo, "logistic", x);
  const struct hlo rest = hlo_mul(hlo, x, hlo_sub(hlo, one, sigma));
  hlo_result(hlo, 0, hlo_mul(hlo, dy, hlo_mul(hlo, sigma, hlo_add(hlo, one, rest))));
}

static const struct op_kind kind_slope = {
    OP_SLOPE("x"),           .name = "silu_backward",   .lower.write = lower_slope,
    .template_name = "silu", .reference.scalar = slope,
};

static void write_onnx(struct onnx *onnx) {
  onnx_result(onnx, 0, onnx_binary(onnx, "Mul", onnx_input(onnx, 0), onnx_unary(onnx, "Sigmoid", onnx_input(onnx, 0))));
}

static void lower(struct stablehlo *hlo) {
  const struct hlo x = hlo_input(hlo, 0);
  hlo_result(hlo, 0, hlo_mul(hlo, x, hlo_unary(hlo, "logistic", x)));
}

static const struct op_kind kind = {
    OP_UNARY,
    .name = "silu",
    .lower.write = lower,
    .onnx.write = write_onnx,
    .reference.scalar = scalar,
    .gradient = op_gradient_of_x,
    .slope = &kind_slope,
};

const struct op_file op_file_silu = {
    .name = "silu",
    .kinds = (const struct op_kind *const[]){&kind, &kind_slope, NULL},
    .functions = (const struct op_function[]){{"silu", .kind = &kind}, {0}},
};
