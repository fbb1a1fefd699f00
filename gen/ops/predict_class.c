/* y[r] = the class that the logits x[r] predict: the index of the largest, the first of equal ones; of a single
 * logit, which is that of class 1 against class 0, whether it is positive. Without a gradient. */
#include "gen/ops/support/support.h"
#include "gen/stablehlo/stablehlo.h"

static int infer(struct arena *arena, const struct node *node, struct shape *shapes, enum dtype *dtypes,
                 const char **error) {
  if (!op_check_float(arena, node, 0, error) || !op_check_rank(arena, node, 0, 1, error)) return 0;
  return op_result(shapes, dtypes, op_leading(node->inputs[0]->shape), DTYPE_INT32);
}

static void reference(const struct node *node, const double *const *inputs, double *const *outputs) {
  int64_t columns = op_columns(node->inputs[0]->shape), rows = op_rows(node->inputs[0]->shape);
  for (int64_t r = 0; r < rows; r++) {
    const double *x = inputs[0] + r * columns;
    int64_t best = 0;
    for (int64_t c = 1; c < columns; c++)
      if (x[c] > x[best]) best = c;
    outputs[0][r] = columns == 1 ? x[0] > 0 : (double)best;
  }
}

static void lower(struct stablehlo *hlo) {
  const struct hlo x = hlo_input(hlo, 0);
  const int last = x.shape.rank - 1;
  const bool single = x.shape.dim[last] == 1;
  hlo_result(hlo, 0, single ? hlo_compare(hlo, "GT", x, hlo_number(0)) : hlo_argmax(hlo, x, last));
}

static const struct op_kind kind = {
    .name = "predict_class",
    .lower.write = lower,
    .class = OP_KERNEL,
    .input_names = {"x"},
    .output_names = {"y"},
    .infer = infer,
    .sequence.along = op_along_rows,
    .cost.flops_each = 1,
    .reference.evaluate = reference,
};

const struct op_file op_file_predict_class = {
    .name = "predict_class",
    .kinds = (const struct op_kind *const[]){&kind, NULL},
};
