/* y = cos x, dx = -dy sin x. */
#include <math.h>

#include "gen/ops/support/elementwise.h"

static void gradient(struct builder *builder, const struct node *node, struct value *const *dy, struct value **dx) {
  dx[0] = builder_unary(builder, "neg", op_mul(builder, dy[0], builder_unary(builder, "sin", node->inputs[0])));
}

static const struct op_kind kind = {
    OP_UNARY,
    .name = "cos",
    .lower.operation = "cosine",
    .onnx.operator= "Cos",
    .reference.scalar = cos,
    .gradient = gradient,
};

const struct op_file op_file_cos = {
    .name = "cos",
    .kinds = (const struct op_kind *const[]){&kind, NULL},
    .functions = (const struct op_function[]){{"cos_of", .kind = &kind}, {0}},
};
