/* y = ln(1 + e^x) = max(x, 0) + ln(1 + e^-|x|), dx = dy / (1 + e^-x). */
#include <math.h>

#include "gen/ops/support/elementwise.h"
#include "gen/stablehlo/stablehlo.h"

static double scalar(double x) {
  return fmax(x, 0) + log1p(exp(-fabs(x)));
}

static void gradient(struct builder *builder, const struct node *node, struct value *const *dy, struct value **dx) {
  dx[0] = op_mul(builder, dy[0], builder_unary(builder, "sigmoid", node->inputs[0]));
}

static void lower(struct stablehlo *hlo) {
  const struct hlo x = hlo_input(hlo, 0);
  const struct hlo falling = hlo_unary(hlo, "exponential", hlo_unary(hlo, "negate", hlo_unary(hlo, "abs", x)));
  const struct hlo rest = hlo_unary(hlo, "log_plus_one", falling);
  hlo_result(hlo, 0, hlo_add(hlo, hlo_binary(hlo, "maximum", x, hlo_number(0)), rest));
}

static const struct op_kind kind = {
    OP_UNARY,
    .name = "softplus",
    .lower.write = lower,
    .onnx.operator= "Softplus",
    .reference.scalar = scalar,
    .gradient = gradient,
    .types.autocast = {AUTOCAST_AS_IS, AUTOCAST_FLOAT32},
};

const struct op_file op_file_softplus = {
    .name = "softplus",
    .kinds = (const struct op_kind *const[]){&kind, NULL},
    .functions = (const struct op_function[]){{"softplus", .kind = &kind}, {0}},
};
