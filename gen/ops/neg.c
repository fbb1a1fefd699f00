/* y = -x, dx = -dy. */
#include "gen/ir/op_support.h"

static double apply(const struct node *node, const double *x) {
  (void)node;
  return -x[0];
}

static void reference(const struct node *node, const double *const *inputs, double *const *outputs) {
  op_map(node, inputs, outputs[0], apply);
}

static void gradient(struct builder *builder, const struct node *node, struct value *const *dy, struct value **dx) {
  (void)node;
  dx[0] = builder_unary(builder, "neg", dy[0]);
}

static const struct op_kind kind = {
    .name = "neg",
    .class = OP_ELEMENTWISE,
    .input_names = {"x"},
    .output_names = {"y"},
    .infer = op_infer_elementwise,
    .gradient = gradient,
    .in_place = {1},
    .mean = op_mean_kept,
    .reference = reference,
};

static struct value *build(struct builder *builder, const struct argument *arguments, int count) {
  (void)count;
  return builder_unary(builder, "neg", op_tensor(arguments, 0));
}

const struct op_file op_file_neg = {
    .name = "neg",
    .kinds = (const struct op_kind *const[]){&kind, NULL},
    .functions = (const struct op_function[]){{"neg", build}, {0}},
};
