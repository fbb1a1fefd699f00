/* y = x + value; dx = dy. */
#include "gen/ir/op_support.h"

static double apply(const struct node *node, const double *x) {
  return x[0] + node_real(node, "value");
}

static void reference(const struct node *node, const double *const *inputs, double *const *outputs) {
  op_map(node, inputs, outputs[0], apply);
}

static void gradient(struct builder *builder, const struct node *node, struct value *const *dy, struct value **dx) {
  (void)builder;
  (void)node;
  dx[0] = dy[0];
}

/* Of sums, each would bring the value. */
static struct mean mean(const struct node *node, const struct mean *inputs) {
  struct mean none = {.form = MEAN_NONE};
  return inputs[0].form == MEAN_SUM ? none : op_mean_kept(node, inputs);
}

static const struct op_kind kind = {
    .name = "shift",
    .class = OP_ELEMENTWISE,
    .input_names = {"x"},
    .output_names = {"y"},
    .infer = op_infer_elementwise,
    .gradient = gradient,
    .in_place = {1},
    .mean = mean,
    .reference = reference,
};

static struct value *build(struct builder *builder, const struct argument *arguments, int count) {
  (void)count;
  return op_shift(builder, op_tensor(arguments, 0), arguments[1].real);
}

const struct op_file op_file_shift = {
    .name = "shift",
    .kinds = (const struct op_kind *const[]){&kind, NULL},
    .functions = (const struct op_function[]){{"shift", build}, {0}},
};
