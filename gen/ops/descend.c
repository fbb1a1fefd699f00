/* weight -= rate * gradient, where the gradient is in the backward: rate is the step's, and with clip > 0 no element of
 * the gradient counts as more than that. The plan puts it behind the last step that reads the weight. */
#include <math.h>

#include "gen/ops/support/support.h"

static int infer(struct arena *arena, const struct node *node, struct shape *shapes, enum dtype *dtypes,
                 const char **error) {
  if (!op_check_float(arena, node, 0, error)) return 0;
  return op_result(shapes, dtypes, node->inputs[0]->shape, DTYPE_FLOAT32);
}

/* What is added to a weight at a rate of 1. */
static void reference(const struct node *node, const double *const *inputs, double *const *outputs) {
  double clip = node_real(node, "clip");
  for (int64_t i = 0; i < shape_count(node->inputs[0]->shape); i++) {
    double g = inputs[0][i];
    outputs[0][i] = clip > 0 ? -fmin(fmax(g, -clip), clip) : -g;
  }
}

const struct op_kind op_descend = {
    .name = "descend",
    .class = OP_KERNEL,
    .input_names = {"gradient"},
    .output_names = {"weight"},
    .infer = infer,
    .flops = op_flops_none,
    .updates = true,
    .reference = reference,
};

const struct op_file op_file_descend = {
    .name = "descend",
    .kinds = (const struct op_kind *const[]){&op_descend, NULL},
};
