/* y = sin x, dx = dy cos x. */
#include <math.h>

#include "gen/ir/op_support.h"

static double apply(const struct node *node, const double *x) {
  (void)node;
  return sin(x[0]);
}

static void reference(const struct node *node, const double *const *inputs, double *const *outputs) {
  op_map(node, inputs, outputs[0], apply);
}

static void gradient(struct builder *builder, const struct node *node, struct value *const *dy, struct value **dx) {
  dx[0] = builder_binary(builder, "mul", dy[0], builder_unary(builder, "cos", node->inputs[0]));
}

static const struct op_kind kind = {
    .name = "sin",
    .class = OP_ELEMENTWISE,
    .input_names = {"x"},
    .output_names = {"y"},
    .infer = op_infer_elementwise,
    .gradient = gradient,
    .in_place = {1},
    .reference = reference,
};

static struct value *build(struct builder *builder, const struct argument *arguments, int count) {
  (void)count;
  return builder_unary(builder, "sin", op_tensor(arguments, 0));
}

const struct op_file op_file_sin = {
    .name = "sin",
    .kinds = (const struct op_kind *const[]){&kind, NULL},
    .functions = (const struct op_function[]){{"sin_of", build}, {0}},
};
