/* y[i] = x[0] + … + x[i] along an axis, or with `reverse` x[i] + … + x[n - 1]; dx is the same of dy the other way. */
#include "gen/ops/support/support.h"

static void reference(const struct node *node, const double *const *inputs, double *const *outputs) {
  struct op_block block = op_block(node->inputs[0]->shape, (int)node_int(node, "axis"));
  bool reverse = node_int(node, "reverse") != 0;
  for (int64_t o = 0; o < block.outer; o++)
    for (int64_t i = 0; i < block.inner; i++) {
      double sum = 0;
      for (int64_t e = 0; e < block.extent; e++) {
        int64_t place = (o * block.extent + (reverse ? block.extent - 1 - e : e)) * block.inner + i;
        outputs[0][place] = sum += inputs[0][place];
      }
    }
}

static struct value *cumsum(struct builder *builder, struct value *x, int64_t axis, int64_t reverse) {
  struct attribute attributes[] = {attribute_int("axis", axis), attribute_int("reverse", reverse)};
  return builder_op(builder, "cumsum", &x, 1, attributes, 2);
}

static void gradient(struct builder *builder, const struct node *node, struct value *const *dy, struct value **dx) {
  dx[0] = cumsum(builder, dy[0], node_int(node, "axis"), !node_int(node, "reverse"));
}

static const struct op_kind kind = {
    .name = "cumsum",
    .class = OP_KERNEL,
    .input_names = {"x"},
    .output_names = {"y"},
    .infer = op_infer_like,
    .along = op_along_others,
    .gradient = gradient,
    .autocast = {AUTOCAST_AS_IS, AUTOCAST_FLOAT32},
    .reference = reference,
};

/* cumsum(x, axis) */
static struct value *build(struct builder *builder, const struct argument *arguments, int count) {
  (void)count;
  struct value *x = op_tensor(arguments, 0);
  int axis = x != NULL ? op_axis(builder, "cumsum", x, &arguments[1]) : -1;
  return axis < 0 ? NULL : cumsum(builder, x, axis, 0);
}

const struct op_file op_file_cumsum = {
    .name = "cumsum",
    .kinds = (const struct op_kind *const[]){&kind, NULL},
    .functions = (const struct op_function[]){{"cumsum", .build = build}, {0}},
};
