/* y = a b; da = dy b, db = dy a, summed over what was broadcast. */
#include "gen/ops/support/elementwise.h"

static double apply(const struct node *node, const double *x) {
  (void)node;
  return x[0] * x[1];
}

static void gradient(struct builder *builder, const struct node *node, struct value *const *dy, struct value **dx) {
  struct value *a = node->inputs[0], *b = node->inputs[1];
  if (builder_wants_gradient(builder, a)) dx[0] = op_unbroadcast(builder, op_mul(builder, dy[0], b), a->shape);
  if (builder_wants_gradient(builder, b)) dx[1] = op_unbroadcast(builder, op_mul(builder, dy[0], a), b->shape);
}

static const struct op_kind kind = {
    OP_BINARY,
    .ranks.pads = true,
    .name = "mul",
    .lower.operation = "multiply",
    .onnx.operator= "Mul",
    .reference.apply = apply,
    .gradient = gradient,
};

const struct op_file op_file_mul = {
    .name = "mul",
    .kinds = (const struct op_kind *const[]){&kind, NULL},
    .functions = (const struct op_function[]){{"mul", .kind = &kind}, {0}},
};
