/* y = a / b; da = dy / b, db = -dy y / b, summed over what was broadcast. */
#include "gen/ops/support/elementwise.h"

static double apply(const struct node *node, const double *x) {
  (void)node;
  return x[0] / x[1];
}

static struct value *d_divisor(struct builder *builder, const struct node *node, struct value *dy) {
  struct value *product = op_mul(builder, dy, node->outputs[0]);
  return op_neg(builder, op_div(builder, product, node->inputs[1]));
}

static void gradient(struct builder *builder, const struct node *node, struct value *const *dy, struct value **dx) {
  struct value *a = node->inputs[0], *b = node->inputs[1];
  if (builder_wants_gradient(builder, a)) dx[0] = op_unbroadcast(builder, op_div(builder, dy[0], b), a->shape);
  if (builder_wants_gradient(builder, b)) dx[1] = op_unbroadcast(builder, d_divisor(builder, node, dy[0]), b->shape);
}

/* A sum, or a mean, over the sum of weights, or their mean, is a mean over the weights. */
static struct mean mean(const struct node *node, const struct mean *inputs) {
  const struct mean *total = &inputs[0], *weights = &inputs[1];
  bool adds = weights->form == MEAN_SUM || weights->form == MEAN_FIXED;
  if (!adds || (total->form != MEAN_SUM && total->form != MEAN_FIXED) || node->inputs[1]->differentiable)
    return (struct mean){.form = MEAN_NONE};
  return (struct mean){.form = MEAN_COUNTED,
                       .most = weights->form == MEAN_SUM ? weights->most : 1,
                       .count = weights->count,
                       .of = weights->count};
}

static const struct op_kind kind = {
    OP_BINARY,
    .name = "div",
    .lower.operation = "divide",
    .onnx.operator= "Div",
    .reference.apply = apply,
    .gradient = gradient,
    .evaluation.mean = mean,
};

const struct op_file op_file_div = {
    .name = "div",
    .kinds = (const struct op_kind *const[]){&kind, NULL},
    .functions = (const struct op_function[]){{"divide", .kind = &kind}, {0}},
};
