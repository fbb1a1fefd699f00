/* y = 1 / (1 + e^-x), dx = dy y (1 - y). */
#include <math.h>

#include "gen/ir/op_support.h"

static double apply(const struct node *node, const double *x) {
  (void)node;
  return 1 / (1 + exp(-x[0]));
}

static void reference(const struct node *node, const double *const *inputs, double *const *outputs) {
  op_map(node, inputs, outputs[0], apply);
}

static void gradient(struct builder *builder, const struct node *node, struct value *const *dy, struct value **dx) {
  dx[0] = builder_binary(builder, "sigmoid_backward", dy[0], node->outputs[0]);
}

static const struct op_kind kind = {
    .name = "sigmoid",
    .class = OP_ELEMENTWISE,
    .input_names = {"x"},
    .output_names = {"y"},
    .infer = op_infer_elementwise,
    .gradient = gradient,
    .in_place = {1},
    .reference = reference,
};

/* Operands: dy, y. */
static double apply_backward(const struct node *node, const double *v) {
  (void)node;
  double dy = v[0], y = v[1];
  return dy * y * (1 - y);
}

static void reference_backward(const struct node *node, const double *const *inputs, double *const *outputs) {
  op_map(node, inputs, outputs[0], apply_backward);
}

static const struct op_kind kind_backward = {
    .name = "sigmoid_backward",
    .class = OP_ELEMENTWISE,
    .template_name = "sigmoid",
    .input_names = {"dy", "y"},
    .output_names = {"dx"},
    .infer = op_infer_elementwise,
    .in_place = {1},
    .reference = reference_backward,
};

static struct value *build(struct builder *builder, const struct argument *arguments, int count) {
  (void)count;
  return builder_unary(builder, "sigmoid", op_tensor(arguments, 0));
}

const struct op_file op_file_sigmoid = {
    .name = "sigmoid",
    .kinds = (const struct op_kind *const[]){&kind, &kind_backward, NULL},
    .functions = (const struct op_function[]){{"sigmoid", build}, {0}},
};
