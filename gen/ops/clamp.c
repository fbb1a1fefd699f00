/* y = x clamped to [low, high]; dx = dy where it was there already, bounds included, else 0: as PyTorch. */
#include "gen/onnx/onnx.h"
#include "gen/ops/support/elementwise.h"
#include "gen/stablehlo/stablehlo.h"

static double apply(const struct node *node, const double *x) {
  double low = node_real(node, "low"), high = node_real(node, "high");
  return x[0] < low ? low : x[0] > high ? high : x[0];
}

/* Operands: dy, x. */
static double apply_slope(const struct node *node, const double *v) {
  return v[1] >= node_real(node, "low") && v[1] <= node_real(node, "high") ? v[0] : 0;
}

static void lower_slope(struct stablehlo *hlo) {
  const struct hlo dy = hlo_input(hlo, 0), x = hlo_input(hlo, 1);
  const struct hlo low = hlo_number(node_real(hlo_node(hlo), "low")),
                   high = hlo_number(node_real(hlo_node(hlo), "high"));
  const struct hlo within = hlo_binary(hlo, "and", hlo_compare(hlo, "GE", x, low), hlo_compare(hlo, "LE", x, high));
  hlo_result(hlo, 0, hlo_select(hlo, within, dy, hlo_number(0)));
}

static const struct op_kind kind_slope = {
    OP_SLOPE("x"),
    .name = "clamp_backward",
    .lower.write = lower_slope,
    .template_name = "clamp",
    .reference.apply = apply_slope,
};

static void write_onnx(struct onnx *onnx) {
  const char *low = onnx_real_tensor(onnx, "low"), *high = onnx_real_tensor(onnx, "high");
  onnx_result(onnx, 0, onnx_ternary(onnx, "Clip", onnx_input(onnx, 0), low, high));
}

static void lower(struct stablehlo *hlo) {
  const struct hlo low = hlo_number(node_real(hlo_node(hlo), "low")),
                   high = hlo_number(node_real(hlo_node(hlo), "high"));
  hlo_result(hlo, 0, hlo_binary(hlo, "minimum", hlo_binary(hlo, "maximum", hlo_input(hlo, 0), low), high));
}

static const struct op_kind kind = {
    OP_UNARY,
    .name = "clamp",
    .lower.write = lower,
    .onnx.write = write_onnx,
    .reference.apply = apply,
    .gradient = op_gradient_of_x,
    .slope = &kind_slope,
};

/* clamp(x, low, high) */
static struct value *build(struct builder *builder, const struct argument *arguments, int count) {
  (void)count;
  double low = arguments[1].real, high = arguments[2].real;
  if (low > high) {
    builder_error(builder, "clamp: the lower bound %g is above the upper bound %g", low, high);
    return NULL;
  }
  return op_clamp(builder, op_tensor(arguments, 0), low, high);
}

const struct op_file op_file_clamp = {
    .name = "clamp",
    .kinds = (const struct op_kind *const[]){&kind, &kind_slope, NULL},
    .functions = (const struct op_function[]){{"clamp", .build = build}, {0}},
};
