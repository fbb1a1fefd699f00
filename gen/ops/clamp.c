/* y = x held within [low, high]; dx = dy where it was there already, bounds included, else 0: as PyTorch. */
#include "gen/ir/op_support.h"

static double apply(const struct node *node, const double *x) {
  double low = node_real(node, "low"), high = node_real(node, "high");
  return x[0] < low ? low : x[0] > high ? high : x[0];
}

static void reference(const struct node *node, const double *const *inputs, double *const *outputs) {
  op_map(node, inputs, outputs[0], apply);
}

static void gradient(struct builder *builder, const struct node *node, struct value *const *dy, struct value **dx) {
  struct value *inputs[] = {dy[0], node->inputs[0]};
  dx[0] = builder_op(builder, "clamp_backward", inputs, 2, node->attributes, node->n_attributes);
}

static const struct op_kind kind = {
    .name = "clamp",
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
  return v[1] >= node_real(node, "low") && v[1] <= node_real(node, "high") ? v[0] : 0;
}

static void reference_backward(const struct node *node, const double *const *inputs, double *const *outputs) {
  op_map(node, inputs, outputs[0], apply_backward);
}

static const struct op_kind kind_backward = {
    .name = "clamp_backward",
    .class = OP_ELEMENTWISE,
    .template_name = "clamp",
    .input_names = {"dy", "x"},
    .output_names = {"dx"},
    .infer = op_infer_elementwise,
    .in_place = {1},
    .reference = reference_backward,
};

/* clamp(x, low, high) */
static struct value *build(struct builder *builder, const struct argument *arguments, int count) {
  (void)count;
  double low = arguments[1].real, high = arguments[2].real;
  if (low > high) {
    builder_error(builder, "clamp: the lower bound %g is above the upper bound %g", low, high);
    return NULL;
  }
  return op_clamp(builder, op_tensor(arguments, 0), low, high);
}

const struct op_file op_file_clamp = {
    .name = "clamp",
    .kinds = (const struct op_kind *const[]){&kind, &kind_backward, NULL},
    .functions = (const struct op_function[]){{"clamp", build}, {0}},
};
