/* y = `count` positions of x along an axis from position at[0] on, which is known when the program runs; a position
 * after the last one that leaves space for all of them counts as that one, as in XLA's DynamicSlice. */
#include <string.h>

#include "gen/ops/support/lowered.h"
#include "gen/ops/support/support.h"

static int infer(struct arena *arena, const struct node *node, struct shape *shapes, enum dtype *dtypes,
                 const char **error) {
  struct shape x = node->inputs[0]->shape;
  int64_t axis = node_int(node, "axis"), count = node_int(node, "count");
  if (axis < 0 || axis >= x.rank || count < 1 || count > x.dim[axis])
    return op_fail(arena, node, error, "%s has not %lld positions along axis %lld", op_operand_text(arena, node, 0),
                   (long long)count, (long long)axis);
  if (!op_check_at(arena, node, 1, error)) return 0;
  return op_result(shapes, dtypes, op_with_extent(x, (int)axis, count), node->inputs[0]->dtype);
}

static void reference(const struct node *node, const double *const *inputs, double *const *outputs) {
  struct op_block x = op_block(node->inputs[0]->shape, (int)node_int(node, "axis"));
  int64_t count = node_int(node, "count"), first = (int64_t)inputs[1][0];
  if (first > x.extent - count) first = x.extent - count;
  for (int64_t o = 0; o < x.outer; o++)
    memcpy(outputs[0] + o * count * x.inner, inputs[0] + (o * x.extent + first) * x.inner,
           (size_t)(count * x.inner) * sizeof(double));
}

static void lower(struct stablehlo *hlo) {
  const struct node *node = hlo_node(hlo);
  hlo_result(hlo, 0,
             hlo_slice_at(hlo, hlo_raw_input(hlo, 0), (int)node_int(node, "axis"), op_lower_number(hlo, 1),
                          node_int(node, "count")));
}

static const struct op_kind kind = {
    .name = "dynamic_slice",
    .lower.write = lower,
    .class = OP_KERNEL,
    .input_names = {"x", "at"},
    .output_names = {"y"},
    .infer = infer,
    .cost.flops = op_flops_none,
    .reference.evaluate = reference,
};

const struct op_file op_file_dynamic_slice = {
    .name = "dynamic_slice",
    .kinds = (const struct op_kind *const[]){&kind, NULL},
};
