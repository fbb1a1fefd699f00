/* y = max(x, 0), dx = dy where x > 0, else 0. */
#include "gen/ops/support/elementwise.h"
#include "gen/stablehlo/stablehlo.h"

static double scalar(double x) {
  return x > 0 ? x : 0;
}

static double slope(double x) {
  return x > 0 ? 1 : 0;
}

static void lower_slope(struct stablehlo *hlo) {
  const struct hlo dy = hlo_input(hlo, 0), x = hlo_input(hlo, 1);
  hlo_result(hlo, 0, hlo_select(hlo, hlo_compare(hlo, "GT", x, hlo_number(0)), dy, hlo_number(0)));
}

static const struct op_kind kind_slope = {OP_SLOPE("x"), .name = "relu_backward", .lower.write = lower_slope,
                                          .template_name = "relu", .reference.scalar = slope};

static void lower(struct stablehlo *hlo) {
  const struct hlo x = hlo_input(hlo, 0);
  hlo_result(hlo, 0, hlo_binary(hlo, "maximum", x, hlo_number(0)));
}

static const struct op_kind kind = {
    OP_UNARY,
    .name = "relu",
    .lower.write = lower,
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
