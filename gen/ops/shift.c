/* y = x + value; dx = dy. */
#include "gen/onnx/onnx.h"
#include "gen/ops/support/elementwise.h"
#include "gen/stablehlo/stablehlo.h"

static double apply(const struct node *node, const double *x) {
  return x[0] + node_real(node, "value");
}

/* Of sums, each would bring the value. */
static struct mean mean(const struct node *node, const struct mean *inputs) {
  struct mean none = {.form = MEAN_NONE};
  return inputs[0].form == MEAN_SUM ? none : op_mean_preserved(node, inputs);
}

static void write_onnx(struct onnx *onnx) {
  onnx_result(onnx, 0, onnx_binary(onnx, "Add", onnx_input(onnx, 0), onnx_real_tensor(onnx, "value")));
}

static void lower(struct stablehlo *hlo) {
  hlo_result(hlo, 0, hlo_add(hlo, hlo_input(hlo, 0), hlo_number(node_real(hlo_node(hlo), "value"))));
}

static const struct op_kind kind = {
    OP_UNARY,
    .name = "shift",
    .lower.write = lower,
    .onnx.write = write_onnx,
    .reference.apply = apply,
    .gradient = op_gradient_same,
    .evaluation.mean = mean,
};

static struct value *build(struct builder *builder, const struct argument *arguments, int count) {
  (void)count;
  return op_shift(builder, op_tensor(arguments, 0), arguments[1].real);
}

const struct op_file op_file_shift = {
    .name = "shift",
    .kinds = (const struct op_kind *const[]){&kind, NULL},
    .functions = (const struct op_function[]){{"shift", .build = build}, {0}},
};
