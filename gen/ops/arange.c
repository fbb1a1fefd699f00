/* y = 0, 1, 2, …, int32. */
#include "gen/onnx/onnx.h"
#include "gen/ops/support/support.h"
#include "gen/stablehlo/stablehlo.h"

static int infer(struct arena *arena, const struct node *node, struct shape *shapes, enum dtype *dtypes,
                 const char **error) {
  (void)arena;
  (void)error;
  return op_result(shapes, dtypes, shape_of(1, node_int(node, "count")), DTYPE_INT32);
}

static void reference(const struct node *node, const double *const *inputs, double *const *outputs) {
  (void)inputs;
  for (int64_t i = 0; i < node_int(node, "count"); i++) outputs[0][i] = (double)i;
}

static void range(const struct node *node, int64_t none, int64_t *low, int64_t *high) {
  (void)none;
  *low = 0;
  *high = node_int(node, "count") - 1;
}

static void write_onnx(struct onnx *onnx) {
  onnx_result(onnx, 0, onnx_cast(onnx, onnx_range(onnx, onnx_int_extent(onnx, "count")), DTYPE_INT32));
}

static void lower(struct stablehlo *hlo) {
  hlo_result(hlo, 0, hlo_iota(hlo, shape_of(1, node_int(hlo_node(hlo), "count")), 0, HLO_I32));
}

static const struct op_kind kind = {
    .name = "arange",
    .lower.write = lower,
    .onnx.write = write_onnx,
    .class = OP_KERNEL,
    .output_names = {"y"},
    .infer = infer,
    .cost.flops = op_flops_none,
    .index.range = range,
    .reference.evaluate = reference,
};

static struct value *build(struct builder *builder, const struct argument *arguments, int count) {
  (void)count;
  if (arguments[0].integer >= 1) return op_arange(builder, arguments[0].integer);
  builder_error(builder, "arange: the count must be at least 1, not %lld", (long long)arguments[0].integer);
  return NULL;
}

const struct op_file op_file_arange = {
    .name = "arange",
    .kinds = (const struct op_kind *const[]){&kind, NULL},
    .functions = (const struct op_function[]){{"arange", .build = build}, {0}},
};
