/* y = ln(1 + e^x) = max(x, 0) + ln(1 + e^-|x|), dx = dy / (1 + e^-x). */
#include <math.h>

#include "gen/ops/support/elementwise.h"

static double scalar(double x) {
  return fmax(x, 0) + log1p(exp(-fabs(x)));
}

static void gradient(struct builder *builder, const struct node *node, struct value *const *dy, struct value **dx) {
  dx[0] = op_mul(builder, dy[0], builder_unary(builder, "sigmoid", node->inputs[0]));
}

static const struct op_kind kind = {
    OP_UNARY,
    .name = "softplus",
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
