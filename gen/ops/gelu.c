/* y = x P(x), dx = dy (P(x) + x p(x)), P(x) = (1 + erf(x / sqrt(2))) / 2 and p its derivative e^(-x^2 / 2) / sqrt(2 pi)
 * (Hendrycks, Gimpel, arXiv:1606.08415, section 2). */
#include <math.h>

#include "gen/ir/op_support.h"

static double normal_cdf(double x) {
  return (1 + erf(x / sqrt(2))) / 2;
}

static double normal_density(double x) {
  return exp(-x * x / 2) / sqrt(8 * atan(1));
}

static double apply(const struct node *node, const double *x) {
  (void)node;
  return x[0] * normal_cdf(x[0]);
}

static void reference(const struct node *node, const double *const *inputs, double *const *outputs) {
  op_map(node, inputs, outputs[0], apply);
}

static void gradient(struct builder *builder, const struct node *node, struct value *const *dy, struct value **dx) {
  dx[0] = builder_binary(builder, "gelu_backward", dy[0], node->inputs[0]);
}

static const struct op_kind kind = {
    .name = "gelu",
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
  return dy * (normal_cdf(x) + x * normal_density(x));
}

static void reference_backward(const struct node *node, const double *const *inputs, double *const *outputs) {
  op_map(node, inputs, outputs[0], apply_backward);
}

static const struct op_kind kind_backward = {
    .name = "gelu_backward",
    .class = OP_ELEMENTWISE,
    .template_name = "gelu",
    .input_names = {"dy", "x"},
    .output_names = {"dx"},
    .infer = op_infer_elementwise,
    .in_place = {1},
    .reference = reference_backward,
};

static struct value *build(struct builder *builder, const struct argument *arguments, int count) {
  (void)count;
  return builder_unary(builder, "gelu", op_tensor(arguments, 0));
}

const struct op_file op_file_gelu = {
    .name = "gelu",
    .kinds = (const struct op_kind *const[]){&kind, &kind_backward, NULL},
    .functions = (const struct op_function[]){{"gelu", build}, {0}},
};
