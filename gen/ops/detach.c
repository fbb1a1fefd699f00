/* y = x, and no gradient flows back to x. */
#include "gen/ops/support/elementwise.h"
#include "gen/stablehlo/stablehlo.h"

static double scalar(double x) {
  return x;
}

static void lower(struct stablehlo *hlo) {
  hlo_result(hlo, 0, hlo_raw_input(hlo, 0));
}

static const struct op_kind kind = {
    OP_UNARY,
    .name = "detach",
    .lower.write = lower,
    .onnx.operator= "Identity",
    .cost.flops = op_flops_none,
    .evaluation.mean = op_mean_preserved,
    .reference.scalar = scalar,
};

const struct op_file op_file_detach = {
    .name = "detach",
    .kinds = (const struct op_kind *const[]){&kind, NULL},
    .functions = (const struct op_function[]){{"detach", .kind = &kind}, {0}},
};
