/* y = x (1 + t) / 2, dx = dy ((1 + t) / 2 + x (1 - t^2) u' / 2), t = tanh(u), u = sqrt(2 / pi) (x + 0.044715 x^3)
 * (Hendrycks, Gimpel, arXiv:1606.08415, section 2). */
#include <math.h>

#include "gen/ir/op_support.h"

static double inner(double x) {
  return sqrt(0.5 / atan(1)) * (x + 0.044715 * x * x * x);
}

static double inner_slope(double x) {
  return sqrt(0.5 / atan(1)) * (1 + 3 * 0.044715 * x * x);
}

static double apply(const struct node *node, const double *x) {
  (void)node;
  return x[0] * (1 + tanh(inner(x[0]))) / 2;
}

static void reference(const struct node *node, const double *const *inputs, double *const *outputs) {
  op_map(node, inputs, outputs[0], apply);
}

static void gradient(struct builder *builder, const struct node *node, struct value *const *dy, struct value **dx) {
  dx[0] = builder_binary(builder, "gelu_tanh_backward", dy[0], node->inputs[0]);
}

static const struct op_kind kind = {
    .name = "gelu_tanh",
    .class = OP_ELEMENTWISE,
    .input_names = {"x"},
    .output_names = {"y"},
    .infer = op_infer_elementwise,
    .gradient = gradient,
    .in_place = {1},
    .reference = reference,
};

/* Operands: dy, x. */
static double apply_backward(const struct node *node, const double *v) {
  (void)node;
  double dy = v[0], x = v[1];
  return dy * (1 + tanh(inner(x)) + x * (1 - tanh(inner(x)) * tanh(inner(x))) * inner_slope(x)) / 2;
}

static void reference_backward(const struct node *node, const double *const *inputs, double *const *outputs) {
  op_map(node, inputs, outputs[0], apply_backward);
}

static const struct op_kind kind_backward = {
    .name = "gelu_tanh_backward",
    .class = OP_ELEMENTWISE,
    .template_name = "gelu_tanh",
    .input_names = {"dy", "x"},
    .output_names = {"dx"},
    .infer = op_infer_elementwise,
    .in_place = {1},
    .reference = reference_backward,
};

static struct value *build(struct builder *builder, const struct argument *arguments, int count) {
  (void)count;
  return builder_unary(builder, "gelu_tanh", op_tensor(arguments, 0));
}

const struct op_file op_file_gelu_tanh = {
    .name = "gelu_tanh",
    .kinds = (const struct op_kind *const[]){&kind, &kind_backward, NULL},
    .functions = (const struct op_function[]){{"gelu_tanh", build}, {0}},
};
