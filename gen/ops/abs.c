/* y = |x|, dx = dy times the sign of x: 0 at 0, as PyTorch. */
#include <math.h>

#include "gen/ir/op_support.h"

static double apply(const struct node *node, const double *x) {
  (void)node;
  return fabs(x[0]);
}

static void reference(const struct node *node, const double *const *inputs, double *const *outputs) {
  op_map(node, inputs, outputs[0], apply);
}

static void gradient(struct builder *builder, const struct node *node, struct value *const *dy, struct value **dx) {
  dx[0] = builder_binary(builder, "abs_backward", dy[0], node->inputs[0]);
}

static const struct op_kind kind = {
    .name = "abs",
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
  return x > 0 ? dy : x < 0 ? -dy : 0;
}

static void reference_backward(const struct node *node, const double *const *inputs, double *const *outputs) {
  op_map(node, inputs, outputs[0], apply_backward);
}

static const struct op_kind kind_backward = {
    .name = "abs_backward",
    .class = OP_ELEMENTWISE,
    .template_name = "abs",
    .input_names = {"dy", "x"},
    .output_names = {"dx"},
    .infer = op_infer_elementwise,
    .in_place = {1},
    .reference = reference_backward,
};

static struct value *build(struct builder *builder, const struct argument *arguments, int count) {
  (void)count;
  return builder_unary(builder, "abs", op_tensor(arguments, 0));
}

const struct op_file op_file_abs = {
    .name = "abs",
    .kinds = (const struct op_kind *const[]){&kind, &kind_backward, NULL},
    .functions = (const struct op_function[]){{"abs_of", build}, {0}},
};
