/* y = x in another element type, rounded to the nearest number that it has. dx = dy; differentiation gives a gradient
 * its value's type, so that the gradient of a cast is the cast back. An int32 has no gradient. */
#include "gen/ir/op_support.h"

static int to_float32(struct arena *arena, const struct node *node, struct shape *shapes, enum dtype *dtypes,
                      const char **error) {
  (void)arena;
  (void)error;
  return op_result(shapes, dtypes, node->inputs[0]->shape, DTYPE_FLOAT32);
}

static int to_bfloat16(struct arena *arena, const struct node *node, struct shape *shapes, enum dtype *dtypes,
                       const char **error) {
  if (!op_check_float(arena, node, 0, error)) return 0;
  return op_result(shapes, dtypes, node->inputs[0]->shape, DTYPE_BFLOAT16);
}

static int to_float16(struct arena *arena, const struct node *node, struct shape *shapes, enum dtype *dtypes,
                      const char **error) {
  if (!op_check_float(arena, node, 0, error)) return 0;
  return op_result(shapes, dtypes, node->inputs[0]->shape, DTYPE_FLOAT16);
}

static double apply(const struct node *node, const double *x) {
  (void)node;
  return x[0];
}

static void reference(const struct node *node, const double *const *inputs, double *const *outputs) {
  op_map(node, inputs, outputs[0], apply);
}

static void gradient(struct builder *builder, const struct node *node, struct value *const *dy, struct value **dx) {
  (void)builder;
  if (dtype_is_float(node->inputs[0]->dtype)) dx[0] = dy[0];
}

static const struct op_kind kind = {
    .name = "cast",
    .class = OP_ELEMENTWISE,
    .input_names = {"x"},
    .output_names = {"y"},
    .infer = to_float32,
    .gradient = gradient,
    .converts = true,
    .flops = op_flops_none,
    .reference = reference,
};

static const struct op_kind kind_bfloat16 = {
    .name = "cast_bfloat16",
    .class = OP_ELEMENTWISE,
    .template_name = "cast",
    .input_names = {"x"},
    .output_names = {"y"},
    .infer = to_bfloat16,
    .gradient = gradient,
    .converts = true,
    .flops = op_flops_none,
    .reference = reference,
};

static const struct op_kind kind_float16 = {
    .name = "cast_float16",
    .class = OP_ELEMENTWISE,
    .template_name = "cast",
    .input_names = {"x"},
    .output_names = {"y"},
    .infer = to_float16,
    .gradient = gradient,
    .converts = true,
    .flops = op_flops_none,
    .reference = reference,
};

/* cast_float(x): x itself when it is float32 already. */
static struct value *build(struct builder *builder, const struct argument *arguments, int count) {
  (void)count;
  return builder_cast(builder, op_tensor(arguments, 0), DTYPE_FLOAT32);
}

const struct op_file op_file_cast = {
    .name = "cast",
    .kinds = (const struct op_kind *const[]){&kind, &kind_bfloat16, &kind_float16, NULL},
    .functions = (const struct op_function[]){{"cast_float", build}, {0}},
};
