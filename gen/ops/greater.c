/* y = 1 where a > b, else 0. Without a gradient: it is constant but for the jumps. */
#include "gen/ir/op_support.h"

static double apply(const struct node *node, const double *x) {
  (void)node;
  return x[0] > x[1] ? 1 : 0;
}

static void reference(const struct node *node, const double *const *inputs, double *const *outputs) {
  op_map(node, inputs, outputs[0], apply);
}

static const struct op_kind kind = {
    .name = "greater",
    .class = OP_ELEMENTWISE,
    .input_names = {"a", "b"},
    .output_names = {"y"},
    .infer = op_infer_elementwise,
    .in_place = {1},
    .reference = reference,
};

static struct value *build(struct builder *builder, const struct argument *arguments, int count) {
  (void)count;
  return builder_binary(builder, "greater", op_tensor(arguments, 0), op_tensor(arguments, 1));
}

const struct op_file op_file_greater = {
    .name = "greater",
    .kinds = (const struct op_kind *const[]){&kind, NULL},
    .functions = (const struct op_function[]){{"greater", build}, {0}},
};
