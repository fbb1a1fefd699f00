/* y = x (1 + t) / 2, dx = dy ((1 + t) / 2 + x (1 - t^2) u' / 2), t = tanh(u), u = sqrt(2 / pi) (x + 0.044715 x^3)
 * (Hendrycks, Gimpel, arXiv:1606.08415, section 2). */
#include <math.h>

#include "gen/onnx/onnx.h"
#include "gen/ops/support/elementwise.h"
#include "gen/stablehlo/stablehlo.h"

static double inner(double x) {
  return sqrt(0.5 / atan(1)) * (x + 0.044715 * x * x * x);
}

static double inner_slope(double x) {
  return sqrt(0.5 / atan(1)) * (1 + 3 * 0.044715 * x * x);
}

static double scalar(double x) {
  return x * (1 + tanh(inner(x))) / 2;
}

static double slope(double x) {
  return (1 + tanh(inner(x)) + x * (1 - tanh(inner(x)) * tanh(inner(x))) * inner_slope(x)) / 2;
}

/* The tanh of inner(x). */
static struct hlo lower_tanh(struct stablehlo *hlo, struct hlo x) {
  const struct hlo cube = hlo_mul(hlo, hlo_mul(hlo, hlo_mul(hlo, x, x), x), hlo_number(0.044715));
  return hlo_unary(hlo, "tanh", hlo_mul(hlo, hlo_add(hlo, x, cube), hlo_number(sqrt(0.5 / atan(1)))));
}

static void lower_slope(struct stablehlo *hlo) {
  const struct hlo dy = hlo_input(hlo, 0), x = hlo_input(hlo, 1);
  const struct hlo one = hlo_number(1), tanh = lower_tanh(hlo, x);
  const struct hlo squares = hlo_mul(hlo, hlo_mul(hlo, x, x), hlo_number(3 * 0.044715));
  const struct hlo inner = hlo_mul(hlo, hlo_add(hlo, squares, one), hlo_number(sqrt(0.5 / atan(1))));
  const struct hlo rise = hlo_mul(hlo, hlo_mul(hlo, x, hlo_sub(hlo, one, hlo_mul(hlo, tanh, tanh))), inner);
  const struct hlo slope = hlo_mul(hlo, hlo_add(hlo, hlo_add(hlo, tanh, one), rise), hlo_number(0.5));
  hlo_result(hlo, 0, hlo_mul(hlo, dy, slope));
}

static const struct op_kind kind_slope = {OP_SLOPE("x"), .name = "gelu_tanh_backward", .lower.write = lower_slope,
                                          .template_name = "gelu_tanh", .reference.scalar = slope};

static void write_onnx(struct onnx *onnx) {
  const char *x = onnx_input(onnx, 0), *half = onnx_binary(onnx, "Mul", x, onnx_float(onnx, 0.5));
  const char *cube = onnx_binary(onnx, "Mul", onnx_binary(onnx, "Mul", x, x), x);
  const char *sum = onnx_binary(onnx, "Add", x, onnx_binary(onnx, "Mul", cube, onnx_float(onnx, 0.044715)));
  const char *tanh = onnx_unary(onnx, "Tanh", onnx_binary(onnx, "Mul", sum, onnx_float(onnx, sqrt(0.5 / atan(1)))));
  onnx_result(onnx, 0, onnx_binary(onnx, "Mul", half, onnx_binary(onnx, "Add", tanh, onnx_float(onnx, 1))));
}

static void lower(struct stablehlo *hlo) {
  const struct hlo x = hlo_input(hlo, 0);
  const struct hlo half = hlo_mul(hlo, x, hlo_number(0.5));
  hlo_result(hlo, 0, hlo_mul(hlo, half, hlo_add(hlo, lower_tanh(hlo, x), hlo_number(1))));
}

static const struct op_kind kind = {
    OP_UNARY,
    .name = "gelu_tanh",
    .lower.write = lower,
    .onnx.write = write_onnx,
    .reference.scalar = scalar,
    .gradient = op_gradient_of_x,
    .slope = &kind_slope,
};

const struct op_file op_file_gelu_tanh = {
    .name = "gelu_tanh",
    .kinds = (const struct op_kind *const[]){&kind, &kind_slope, NULL},
    .functions = (const struct op_function[]){{"gelu_tanh", .kind = &kind}, {0}},
};
