/* The update of a parameter by the optimizer's rule, where the gradient is in the backward. What it does
 * depends on the optimizer's states, so that its function is in the optimizer's file. The plan puts it after the
 * last step that reads the weight. */
#include "gen/ops/support/support.h"

static int infer(struct arena *arena, const struct node *node, struct shape *shapes, enum dtype *dtypes,
                 const char **error) {
  if (!op_check_float(arena, node, 0, error)) return 0;
  return op_result(shapes, dtypes, node->inputs[0]->shape, DTYPE_FLOAT32);
}

const struct op_kind op_step_tensor = {
    .name = "step_tensor",
    .class = OP_KERNEL,
    .input_names = {"gradient"},
    .output_names = {"weight"},
    .infer = infer,
    .cost.flops = op_flops_none,
    .kernel.updates = true,
};

const struct op_file op_file_step_tensor = {
    .name = "step_tensor",
    .kinds = (const struct op_kind *const[]){&op_step_tensor, NULL},
};
