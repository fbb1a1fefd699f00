/* y = the smaller of a and b; the gradient goes to it, half to each where they are equal. */
#include "gen/ops/support/elementwise.h"

static double apply(const struct node *node, const double *x) {
  (void)node;
  return x[0] < x[1] ? x[0] : x[1];
}

static void gradient(struct builder *builder, const struct node *node, struct value *const *dy, struct value **dx) {
  op_gradient_of_choice(builder, node, dy, dx, false);
}

static const struct op_kind kind = {
    OP_BINARY,
    .name = "minimum",
    .lower.operation = "minimum",
    .onnx.operator= "Min",
    .reference.apply = apply,
    .gradient = gradient,
};

const struct op_file op_file_minimum = {
    .name = "minimum",
    .kinds = (const struct op_kind *const[]){&kind, NULL},
    .functions = (const struct op_function[]){{"minimum", .kind = &kind}, {0}},
};
