/* y = a / b; da = dy / b, db = -dy y / b, summed over what was broadcast. */
#include "gen/ir/op_support.h"

static double apply(const struct node *node, const double *x) {
  (void)node;
  return x[0] / x[1];
}

static void reference(const struct node *node, const double *const *inputs, double *const *outputs) {
  op_map(node, inputs, outputs[0], apply);
}

static struct value *d_divisor(struct builder *builder, const struct node *node, struct value *dy) {
  struct value *product = builder_binary(builder, "mul", dy, node->outputs[0]);
  return builder_unary(builder, "neg", builder_binary(builder, "div", product, node->inputs[1]));
}

static void gradient(struct builder *builder, const struct node *node, struct value *const *dy, struct value **dx) {
  struct value *a = node->inputs[0], *b = node->inputs[1];
  if (builder_wants_gradient(builder, a))
    dx[0] = builder_unbroadcast(builder, builder_binary(builder, "div", dy[0], b), a->shape);
  if (builder_wants_gradient(builder, b))
    dx[1] = builder_unbroadcast(builder, d_divisor(builder, node, dy[0]), b->shape);
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
    .name = "div",
    .class = OP_ELEMENTWISE,
    .input_names = {"a", "b"},
    .output_names = {"y"},
    .infer = op_infer_elementwise,
    .gradient = gradient,
    .in_place = {1},
    .mean = mean,
    .reference = reference,
};

static struct value *build(struct builder *builder, const struct argument *arguments, int count) {
  (void)count;
  return builder_binary(builder, "div", op_tensor(arguments, 0), op_tensor(arguments, 1));
}

const struct op_file op_file_div = {
    .name = "div",
    .kinds = (const struct op_kind *const[]){&kind, NULL},
    .functions = (const struct op_function[]){{"divide", build}, {0}},
};
