/* y = 1 where a = b, else 0. Without a gradient: it is constant but for the jumps. */
#include "gen/onnx/onnx.h"
#include "gen/ops/support/elementwise.h"
#include "gen/stablehlo/stablehlo.h"

static double apply(const struct node *node, const double *x) {
  (void)node;
  return x[0] == x[1] ? 1 : 0;
}

static void write_onnx(struct onnx *onnx) {
  const char *truth = onnx_binary(onnx, "Equal", onnx_input(onnx, 0), onnx_input(onnx, 1));
  onnx_result(onnx, 0, onnx_cast(onnx, truth, onnx_result_dtype(onnx)));
}

static void lower(struct stablehlo *hlo) {
  const struct hlo a = hlo_input(hlo, 0), b = hlo_input(hlo, 1);
  hlo_result(hlo, 0, hlo_convert(hlo, hlo_compare(hlo, "EQ", a, b), HLO_F32));
}

static const struct op_kind kind = {OP_BINARY, .name = "equal", .lower.write = lower, .onnx.write = write_onnx,
                                    .reference.apply = apply};

const struct op_file op_file_equal = {
    .name = "equal",
    .kinds = (const struct op_kind *const[]){&kind, NULL},
    .functions = (const struct op_function[]){{"equal", .kind = &kind}, {0}},
};
