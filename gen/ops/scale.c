/* y = x value; dx = dy value. */
#include <math.h>

#include "gen/onnx/onnx.h"
#include "gen/ops/support/elementwise.h"
#include "gen/stablehlo/stablehlo.h"

static double apply(const struct node *node, const double *x) {
  return x[0] * node_real(node, "value");
}

static void gradient(struct builder *builder, const struct node *node, struct value *const *dy, struct value **dx) {
  dx[0] = op_scale(builder, dy[0], node_real(node, "value"));
}

/* A sum times 1 / its terms is their mean. */
static struct mean mean(const struct node *node, const struct mean *inputs) {
  struct mean result = inputs[0];
  if (result.form != MEAN_SUM) return result;
  result.most *= node_real(node, "value");
  result.count = node->outputs[0];
  if (fabs(result.most - 1) < 1e-9) result.form = MEAN_FIXED;
  return result;
}

static void write_onnx(struct onnx *onnx) {
  onnx_result(onnx, 0, onnx_binary(onnx, "Mul", onnx_input(onnx, 0), onnx_real_tensor(onnx, "value")));
}

static void lower(struct stablehlo *hlo) {
  hlo_result(hlo, 0, hlo_mul(hlo, hlo_input(hlo, 0), hlo_number(node_real(hlo_node(hlo), "value"))));
}

static const struct op_kind kind = {
    OP_UNARY,
    .ranks.pads = true,
    .name = "scale",
    .lower.write = lower,
    .onnx.write = write_onnx,
    .reference.apply = apply,
    .gradient = gradient,
    .evaluation.mean = mean,
};

static struct value *build(struct builder *builder, const struct argument *arguments, int count) {
  (void)count;
  return op_scale(builder, op_tensor(arguments, 0), arguments[1].real);
}

const struct op_file op_file_scale = {
    .name = "scale",
    .kinds = (const struct op_kind *const[]){&kind, NULL},
    .functions = (const struct op_function[]){{"scale", .build = build}, {0}},
};
