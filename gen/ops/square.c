/* y = x^2, dx = 2 x dy. PyTorch's square is a pow, so CUDA's autocast runs it in float32. */
#include "gen/ir/op_support.h"

static double apply(const struct node *node, const double *x) {
  (void)node;
  return x[0] * x[0];
}

static void reference(const struct node *node, const double *const *inputs, double *const *outputs) {
  op_map(node, inputs, outputs[0], apply);
}

static void gradient(struct builder *builder, const struct node *node, struct value *const *dy, struct value **dx) {
  dx[0] = builder_binary(builder, "mul", dy[0], op_scale(builder, node->inputs[0], 2));
}

static const struct op_kind kind = {
    .name = "square",
    .class = OP_ELEMENTWISE,
    .input_names = {"x"},
    .output_names = {"y"},
    .infer = op_infer_elementwise,
    .gradient = gradient,
    .in_place = {1},
    .autocast = {AUTOCAST_AS_IS, AUTOCAST_FLOAT32},
    .reference = reference,
};

static struct value *build(struct builder *builder, const struct argument *arguments, int count) {
  (void)count;
  return builder_unary(builder, "square", op_tensor(arguments, 0));
}

const struct op_file op_file_square = {
    .name = "square",
    .kinds = (const struct op_kind *const[]){&kind, NULL},
    .functions = (const struct op_function[]){{"square", build}, {0}},
};
