/* Comparisons: y = 1 where a > b, or where a >= b, else 0; less by exchanging a and b. Without a
 * gradient: they are constant but for the jumps. */
#include "gen/onnx/onnx.h"
#include "gen/ops/support/elementwise.h"
#include "gen/stablehlo/stablehlo.h"

static double apply_greater(const struct node *node, const double *x) {
  (void)node;
  return x[0] > x[1] ? 1 : 0;
}

static double apply_greater_equal(const struct node *node, const double *x) {
  (void)node;
  return x[0] >= x[1] ? 1 : 0;
}

static void write_onnx(struct onnx *onnx) {
  const char *truth = onnx_binary(onnx, "Greater", onnx_input(onnx, 0), onnx_input(onnx, 1));
  onnx_result(onnx, 0, onnx_cast(onnx, truth, onnx_result_dtype(onnx)));
}

static void lower(struct stablehlo *hlo) {
  const struct hlo a = hlo_input(hlo, 0), b = hlo_input(hlo, 1);
  hlo_result(hlo, 0, hlo_convert(hlo, hlo_compare(hlo, "GT", a, b), HLO_F32));
}

static const struct op_kind kind = {OP_BINARY, .name = "greater", .lower.write = lower, .onnx.write = write_onnx,
                                    .reference.apply = apply_greater};
static void write_greater_equal(struct onnx *onnx) {
  const char *truth = onnx_binary(onnx, "GreaterOrEqual", onnx_input(onnx, 0), onnx_input(onnx, 1));
  onnx_result(onnx, 0, onnx_cast(onnx, truth, onnx_result_dtype(onnx)));
}

static void lower_greater_equal(struct stablehlo *hlo) {
  const struct hlo a = hlo_input(hlo, 0), b = hlo_input(hlo, 1);
  hlo_result(hlo, 0, hlo_convert(hlo, hlo_compare(hlo, "GE", a, b), HLO_F32));
}

static const struct op_kind kind_greater_equal = {OP_BINARY,
                                                  .name = "greater_equal",
                                                  .lower.write = lower_greater_equal,
                                                  .onnx.write = write_greater_equal,
                                                  .template_name = "greater",
                                                  .reference.apply = apply_greater_equal};

static struct value *build_less(struct builder *builder, const struct argument *arguments, int count) {
  (void)count;
  return op_greater(builder, op_tensor(arguments, 1), op_tensor(arguments, 0));
}

static struct value *build_less_equal(struct builder *builder, const struct argument *arguments, int count) {
  (void)count;
  return builder_binary(builder, "greater_equal", op_tensor(arguments, 1), op_tensor(arguments, 0));
}

const struct op_file op_file_greater = {
    .name = "greater",
    .kinds = (const struct op_kind *const[]){&kind, &kind_greater_equal, NULL},
    .functions = (const struct op_function[]){{"greater", .kind = &kind},
                                              {"greater_equal", .kind = &kind_greater_equal},
                                              {"less", .build = build_less},
                                              {"less_equal", .build = build_less_equal},
                                              {0}},
};
