/* y = e^x, dx = y dy. */
#include <math.h>

#include "gen/ops/support/elementwise.h"

static void gradient(struct builder *builder, const struct node *node, struct value *const *dy, struct value **dx) {
  dx[0] = op_mul(builder, dy[0], node->outputs[0]);
}

static const struct op_kind kind = {
    OP_UNARY,
    .name = "exp",
    .lower.operation = "exponential",
    .onnx.operator= "Exp",
    .reference.scalar = exp,
    .gradient = gradient,
    .types.autocast = {AUTOCAST_AS_IS, AUTOCAST_FLOAT32},
};

const struct op_file op_file_exp = {
    .name = "exp",
    .kinds = (const struct op_kind *const[]){&kind, NULL},
    .functions = (const struct op_function[]){{"exp_of", .kind = &kind}, {0}},
};
