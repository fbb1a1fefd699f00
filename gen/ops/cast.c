/* y = x in another element type, rounded to the nearest number that it has. dx = dy; differentiation gives a gradient
 * its value's type, so that the gradient of a cast is the cast back. An int32 has no gradient. */
#include "gen/onnx/onnx.h"
#include "gen/ops/support/elementwise.h"
#include "gen/stablehlo/stablehlo.h"

static int infer(struct arena *arena, const struct node *node, struct shape *shapes, enum dtype *dtypes,
                 const char **error) {
  if (node->kind->types.to != DTYPE_FLOAT32 && !op_check_float(arena, node, 0, error)) return 0;
  return op_result(shapes, dtypes, node->inputs[0]->shape, node->kind->types.to);
}

static double scalar(double x) {
  return x;
}

static void gradient(struct builder *builder, const struct node *node, struct value *const *dy, struct value **dx) {
  (void)builder;
  if (dtype_is_float(node->inputs[0]->dtype)) dx[0] = dy[0];
}

#define CAST                                                                                                           \
  .class = OP_ELEMENTWISE, .ranks.pads = true, .template_name = "cast", .input_names = {"x"}, .output_names = {"y"},   \
  .infer = infer, .gradient = gradient, .types.converts = true, .cost.flops = op_flops_none,                           \
  .reference.scalar = scalar, .reference.evaluate = op_reference_elementwise

static void write_onnx(struct onnx *onnx) {
  onnx_result(onnx, 0, onnx_cast(onnx, onnx_input(onnx, 0), onnx_result_dtype(onnx)));
}

static void lower(struct stablehlo *hlo) {
  hlo_result(hlo, 0, hlo_raw_input(hlo, 0));
}

static const struct op_kind kind = {CAST, .name = "cast", .lower.write = lower, .onnx.write = write_onnx,
                                    .types.to = DTYPE_FLOAT32};
static const struct op_kind kind_bfloat16 = {CAST, .name = "cast_bfloat16", .lower.write = lower,
                                             .types.to = DTYPE_BFLOAT16};
static const struct op_kind kind_float16 = {CAST, .name = "cast_float16", .lower.write = lower,
                                            .types.to = DTYPE_FLOAT16};

/* cast_float(x): x itself when it is float32 already. */
static struct value *build(struct builder *builder, const struct argument *arguments, int count) {
  (void)count;
  return builder_cast(builder, op_tensor(arguments, 0), DTYPE_FLOAT32);
}

const struct op_file op_file_cast = {
    .name = "cast",
    .kinds = (const struct op_kind *const[]){&kind, &kind_bfloat16, &kind_float16, NULL},
    .functions = (const struct op_function[]){{"cast_float", .build = build}, {0}},
};
