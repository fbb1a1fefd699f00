/* y = sin x, dx = dy cos x. */
#include <math.h>

#include "gen/ops/support/elementwise.h"

static void gradient(struct builder *builder, const struct node *node, struct value *const *dy, struct value **dx) {
  dx[0] = op_mul(builder, dy[0], builder_unary(builder, "cos", node->inputs[0]));
}

static const struct op_kind kind = {
    OP_UNARY,
    .name = "sin",
    .lower.operation = "sine",
    .onnx.operator= "Sin",
    .reference.scalar = sin,
    .gradient = gradient,
};

const struct op_file op_file_sin = {
    .name = "sin",
    .kinds = (const struct op_kind *const[]){&kind, NULL},
    .functions = (const struct op_function[]){{"sin_of", .kind = &kind}, {0}},
};
