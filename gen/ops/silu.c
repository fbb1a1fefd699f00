/* y = x s(x), dx = dy s(x) (1 + x (1 - s(x))), s(x) = 1 / (1 + e^-x)
 * (Elfwing, Uchibe, Doya, arXiv:1702.03118, eq. 5 and 7). */
#include <math.h>

#include "gen/ir/op_support.h"

static double sigma(double x) {
  return 1 / (1 + exp(-x));
}

static double apply(const struct node *node, const double *x) {
  (void)node;
  return x[0] * sigma(x[0]);
}

static void reference(const struct node *node, const double *const *inputs, double *const *outputs) {
  op_map(node, inputs, outputs[0], apply);
}

static void gradient(struct builder *builder, const struct node *node, struct value *const *dy, struct value **dx) {
  dx[0] = builder_binary(builder, "silu_backward", dy[0], node->inputs[0]);
}

static const struct op_kind kind = {
    .name = "silu",
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
  return dy * sigma(x) * (1 + x * (1 - sigma(x)));
}

static void reference_backward(const struct node *node, const double *const *inputs, double *const *outputs) {
  op_map(node, inputs, outputs[0], apply_backward);
}

static const struct op_kind kind_backward = {
    .name = "silu_backward",
    .class = OP_ELEMENTWISE,
    .template_name = "silu",
    .input_names = {"dy", "x"},
    .output_names = {"dx"},
    .infer = op_infer_elementwise,
    .in_place = {1},
    .reference = reference_backward,
};

static struct value *build(struct builder *builder, const struct argument *arguments, int count) {
  (void)count;
  return builder_unary(builder, "silu", op_tensor(arguments, 0));
}

const struct op_file op_file_silu = {
    .name = "silu",
    .kinds = (const struct op_kind *const[]){&kind, &kind_backward, NULL},
    .functions = (const struct op_function[]){{"silu", build}, {0}},
};
