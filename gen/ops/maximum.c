/* y = the larger of a and b; the gradient goes to it, half to each where they are equal. */
#include "gen/ops/support/elementwise.h"

static double apply(const struct node *node, const double *x) {
  (void)node;
  return x[0] > x[1] ? x[0] : x[1];
}

static void gradient(struct builder *builder, const struct node *node, struct value *const *dy, struct value **dx) {
  op_gradient_of_choice(builder, node, dy, dx, true);
}

/* A count that is kept from being 0, where nothing is counted. */
static struct mean mean(const struct node *node, const struct mean *inputs) {
  struct mean none = {.form = MEAN_NONE};
  bool bounds = inputs[1].form == MEAN_SAME && !node->inputs[0]->differentiable;
  return bounds ? op_mean_preserved(node, inputs) : none;
}

static const struct op_kind kind = {
    OP_BINARY,
    .name = "maximum",
    .lower.operation = "maximum",
    .onnx.operator= "Max",
    .reference.apply = apply,
    .gradient = gradient,
    .evaluation.mean = mean,
};

const struct op_file op_file_maximum = {
    .name = "maximum",
    .kinds = (const struct op_kind *const[]){&kind, NULL},
    .functions = (const struct op_function[]){{"maximum", .kind = &kind}, {0}},
};
