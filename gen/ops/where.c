/* y = a where the condition is not 0, else b; the gradient goes to the one that was taken. */
#include "gen/onnx/onnx.h"
#include "gen/ops/support/elementwise.h"
#include "gen/stablehlo/stablehlo.h"

static double apply(const struct node *node, const double *x) {
  (void)node;
  return x[0] != 0 ? x[1] : x[2];
}

static void gradient(struct builder *builder, const struct node *node, struct value *const *dy, struct value **dx) {
  struct value *zero = op_constant(builder, 0, (struct shape){0});
  for (int i = 1; i < 3; i++) {
    if (!builder_wants_gradient(builder, node->inputs[i])) continue;
    struct value *taken[] = {node->inputs[0], i == 1 ? dy[0] : zero, i == 1 ? zero : dy[0]};
    dx[i] = op_unbroadcast(builder, builder_op(builder, "where", taken, 3, NULL, 0), node->inputs[i]->shape);
  }
}

static void write_onnx(struct onnx *onnx) {
  const char *condition = onnx_truth(onnx, onnx_input(onnx, 0));
  onnx_result(onnx, 0, onnx_ternary(onnx, "Where", condition, onnx_input(onnx, 1), onnx_input(onnx, 2)));
}

static void lower(struct stablehlo *hlo) {
  const struct hlo condition = hlo_compare(hlo, "NE", hlo_input(hlo, 0), hlo_number(0));
  hlo_result(hlo, 0, hlo_select(hlo, condition, hlo_input(hlo, 1), hlo_input(hlo, 2)));
}

static const struct op_kind kind = {
    .name = "where",
    .lower.write = lower,
    .onnx.write = write_onnx,
    .class = OP_ELEMENTWISE,
    .input_names = {"condition", "a", "b"},
    .output_names = {"y"},
    .infer = op_infer_elementwise,
    .gradient = gradient,
    .memory.in_place = {2}, /* of a */
    .reference.apply = apply,
    .reference.evaluate = op_reference_elementwise,
};

const struct op_file op_file_where = {
    .name = "where",
    .kinds = (const struct op_kind *const[]){&kind, NULL},
    .functions = (const struct op_function[]){{"where", .kind = &kind}, {0}},
};
