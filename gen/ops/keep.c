/* y = x, in a buffer that later runs of a program read. */
#include "gen/ops/support/lowered.h"
#include "gen/ops/support/support.h"

static int infer(struct arena *arena, const struct node *node, struct shape *shapes, enum dtype *dtypes,
                 const char **error) {
  struct shape x = node->inputs[0]->shape;
  for (int i = 0; i < 2; i++)
    if (!op_check_dtype(arena, node, i, DTYPE_FLOAT32, error)) return 0;
  if (!op_check_shape(arena, node, 1, x, "like x", error)) return 0;
  return op_result(shapes, dtypes, x, DTYPE_FLOAT32);
}

static void reference(const struct node *node, const double *const *inputs, double *const *outputs) {
  for (int64_t i = 0; i < shape_count(node->inputs[0]->shape); i++) outputs[0][i] = inputs[0][i];
}

static void lower(struct stablehlo *hlo) {
  hlo_result(hlo, 0, hlo_input(hlo, 0));
}

static const struct op_kind kind = {
    .name = "keep",
    .lower.write = lower,
    .class = OP_KERNEL,
    .input_names = {"x", "kept"},
    .output_names = {"y"},
    .infer = infer,
    .memory.assigns = {2},
    .cost.flops = op_flops_none,
    .reference.evaluate = reference,
};

const struct op_file op_file_keep = {
    .name = "keep",
    .kinds = (const struct op_kind *const[]){&kind, NULL},
};
