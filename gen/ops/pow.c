/* y = x^p, dx = dy p x^(p - 1); of a negative x only where p is whole. */
#include <math.h>

#include "gen/onnx/onnx.h"
#include "gen/ops/support/elementwise.h"
#include "gen/stablehlo/stablehlo.h"

static double apply(const struct node *node, const double *x) {
  return pow(x[0], node_real(node, "exponent"));
}

static struct value *power(struct builder *builder, struct value *x, double exponent) {
  struct attribute attribute = attribute_real("exponent", exponent);
  return builder_op(builder, "pow", &x, 1, &attribute, 1);
}

static void gradient(struct builder *builder, const struct node *node, struct value *const *dy, struct value **dx) {
  double p = node_real(node, "exponent");
  dx[0] = op_mul(builder, dy[0], op_scale(builder, power(builder, node->inputs[0], p - 1), p));
}

static void write_onnx(struct onnx *onnx) {
  onnx_result(onnx, 0, onnx_binary(onnx, "Pow", onnx_input(onnx, 0), onnx_real_tensor(onnx, "exponent")));
}

static void lower(struct stablehlo *hlo) {
  const struct hlo exponent = hlo_number(node_real(hlo_node(hlo), "exponent"));
  hlo_result(hlo, 0, hlo_binary(hlo, "power", hlo_input(hlo, 0), exponent));
}

static const struct op_kind kind = {
    OP_UNARY,
    .name = "pow",
    .lower.write = lower,
    .onnx.write = write_onnx,
    .reference.apply = apply,
    .gradient = gradient,
    .types.autocast = {AUTOCAST_AS_IS, AUTOCAST_FLOAT32},
};

/* pow_of(x, exponent) */
static struct value *build(struct builder *builder, const struct argument *arguments, int count) {
  (void)count;
  return power(builder, op_tensor(arguments, 0), arguments[1].real);
}

const struct op_file op_file_pow = {
    .name = "pow",
    .kinds = (const struct op_kind *const[]){&kind, NULL},
    .functions = (const struct op_function[]){{"pow_of", .build = build}, {0}},
};
