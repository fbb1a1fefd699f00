/* y = -x, dx = -dy. */
#include "gen/ops/support/elementwise.h"

static double scalar(double x) {
  return -x;
}

static void gradient(struct builder *builder, const struct node *node, struct value *const *dy, struct value **dx) {
  (void)node;
  dx[0] = op_neg(builder, dy[0]);
}

static const struct op_kind kind = {
    OP_UNARY,
    .name = "neg",
    .lower.operation = "negate",
    .onnx.operator= "Neg",
    .reference.scalar = scalar,
    .gradient = gradient,
    .evaluation.mean = op_mean_preserved,
};

const struct op_file op_file_neg = {
    .name = "neg",
    .kinds = (const struct op_kind *const[]){&kind, NULL},
    .functions = (const struct op_function[]){{"neg", .kind = &kind}, {0}},
};
