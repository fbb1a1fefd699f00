/* y = x, an int32 as float32. No gradient: integers have none. */
#include "gen/ir/op_support.h"

static int infer(struct arena *arena, const struct node *node, struct shape *shapes, enum dtype *dtypes,
                 const char **error) {
  if (!op_check_dtype(arena, node, 0, DTYPE_INT32, error)) return 0;
  return op_result(shapes, dtypes, node->inputs[0]->shape, DTYPE_FLOAT32);
}

static double apply(const struct node *node, const double *x) {
  (void)node;
  return x[0];
}

static void reference(const struct node *node, const double *const *inputs, double *const *outputs) {
  op_map(node, inputs, outputs[0], apply);
}

static const struct op_kind kind = {
    .name = "cast",
    .class = OP_ELEMENTWISE,
    .input_names = {"x"},
    .output_names = {"y"},
    .infer = infer,
    .flops = op_flops_none,
    .reference = reference,
};

/* cast_float(x): x itself when it is float32 already. */
static struct value *build(struct builder *builder, const struct argument *arguments, int count) {
  (void)count;
  struct value *x = op_tensor(arguments, 0);
  return x == NULL || x->dtype == DTYPE_FLOAT32 ? x : builder_unary(builder, "cast", x);
}

const struct op_file op_file_cast = {
    .name = "cast",
    .kinds = (const struct op_kind *const[]){&kind, NULL},
    .functions = (const struct op_function[]){{"cast_float", build}, {0}},
};
