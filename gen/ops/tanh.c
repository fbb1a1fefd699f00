/* y = tanh(x), dx = dy (1 - y^2). */
#include <math.h>

#include "gen/ir/op_support.h"

static double apply(const struct node *node, const double *x) {
  (void)node;
  return tanh(x[0]);
}

static void reference(const struct node *node, const double *const *inputs, double *const *outputs) {
  op_map(node, inputs, outputs[0], apply);
}

static void gradient(struct builder *builder, const struct node *node, struct value *const *dy, struct value **dx) {
  dx[0] = builder_binary(builder, "tanh_backward", dy[0], node->outputs[0]);
}

static const struct op_kind kind = {
    .name = "tanh",
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
  return dy * (1 - y * y);
}

static void reference_backward(const struct node *node, const double *const *inputs, double *const *outputs) {
  op_map(node, inputs, outputs[0], apply_backward);
}

static const struct op_kind kind_backward = {
    .name = "tanh_backward",
    .class = OP_ELEMENTWISE,
    .template_name = "tanh",
    .input_names = {"dy", "y"},
    .output_names = {"dx"},
    .infer = op_infer_elementwise,
    .in_place = {1},
    .reference = reference_backward,
};

static struct value *build(struct builder *builder, const struct argument *arguments, int count) {
  (void)count;
  return builder_unary(builder, "tanh", op_tensor(arguments, 0));
}

const struct op_file op_file_tanh = {
    .name = "tanh",
    .kinds = (const struct op_kind *const[]){&kind, &kind_backward, NULL},
    .functions = (const struct op_function[]){{"tanh_of", build}, {0}},
};
