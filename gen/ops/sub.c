/* y = a - b; da = dy, db = -dy, summed over what was broadcast. */
#include "gen/ir/op_support.h"

static double apply(const struct node *node, const double *x) {
  (void)node;
  return x[0] - x[1];
}

static void reference(const struct node *node, const double *const *inputs, double *const *outputs) {
  op_map(node, inputs, outputs[0], apply);
}

static void gradient(struct builder *builder, const struct node *node, struct value *const *dy, struct value **dx) {
  struct value *a = node->inputs[0], *b = node->inputs[1];
  if (builder_wants_gradient(builder, a)) dx[0] = builder_unbroadcast(builder, dy[0], a->shape);
  if (builder_wants_gradient(builder, b))
    dx[1] = builder_unbroadcast(builder, builder_unary(builder, "neg", dy[0]), b->shape);
}

static const struct op_kind kind = {
    .name = "sub",
    .class = OP_ELEMENTWISE,
    .input_names = {"a", "b"},
    .output_names = {"y"},
    .infer = op_infer_elementwise,
    .gradient = gradient,
    .in_place = {1},
    .mean = op_mean_added,
    .reference = reference,
};

static struct value *build(struct builder *builder, const struct argument *arguments, int count) {
  (void)count;
  return builder_binary(builder, "sub", op_tensor(arguments, 0), op_tensor(arguments, 1));
}

const struct op_file op_file_sub = {
    .name = "sub",
    .kinds = (const struct op_kind *const[]){&kind, NULL},
    .functions = (const struct op_function[]){{"sub", build}, {0}},
};
