/* y = sqrt(x), dx = dy / (2 y). */
#include <math.h>

#include "gen/ops/support/elementwise.h"

static void gradient(struct builder *builder, const struct node *node, struct value *const *dy, struct value **dx) {
  dx[0] = op_div(builder, op_scale(builder, dy[0], 0.5), node->outputs[0]);
}

static const struct op_kind kind = {
    OP_UNARY,
    .name = "sqrt",
    .lower.operation = "sqrt",
    .onnx.operator= "Sqrt",
    .reference.scalar = sqrt,
    .gradient = gradient,
};

const struct op_file op_file_sqrt = {
    .name = "sqrt",
    .kinds = (const struct op_kind *const[]){&kind, NULL},
    .functions = (const struct op_function[]){{"sqrt_of", .kind = &kind}, {0}},
};
