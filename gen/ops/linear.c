/* y = x weight^T + bias, written with matmul, transpose and add; x [..., in] gives [..., out]. Without an initializer
 * of the scope, weight and bias start uniform within 1 / sqrt(in), as torch.nn.Linear; with one, biases are zero. */
#include <math.h>

#include "gen/ops/support/support.h"

static struct initializer pytorch_start(int64_t in) {
  double bound = 1 / sqrt((double)in);
  return (struct initializer){INIT_UNIFORM, -bound, bound};
}

static struct value *bias_of(struct builder *builder, const struct scope *scope, int64_t in, int64_t out) {
  struct shape shape = shape_of(1, out);
  if (scope->init.kind != INIT_DEFAULT) return op_fixed_parameter(builder, scope, "bias", shape, INIT_ZEROS);
  return builder_parameter(builder, scope, "bias", shape, pytorch_start(in));
}

enum layout { OUT_IN, IN_OUT };

/* Whether a layer of `out` columns fits on x; an error otherwise. */
static bool fits(struct builder *builder, const char *function, const struct value *x, int64_t out) {
  const char *shape = shape_text(builder_arena(builder), x->shape);
  if (out < 1)
    builder_error(builder, "%s: out must be at least 1, not %lld", function, (long long)out);
  else if (x->dtype != DTYPE_FLOAT32)
    builder_error(builder, "%s: x %s is %s, where float32 is needed; write cast_float(...) around it", function, shape,
                  dtype_name(x->dtype));
  else if (x->shape.rank < 1)
    builder_error(builder, "%s: x %s must have at least one dimension", function, shape);
  else
    return true;
  return false;
}

static struct value *linear(struct builder *builder, const char *function, const struct argument *arguments,
                            enum layout layout, bool bias) {
  const struct scope *scope = arguments[0].scope;
  struct value *x = op_tensor(arguments, 1);
  int64_t out = arguments[2].integer;
  if (x == NULL || !fits(builder, function, x, out)) return NULL;
  builder_autocast(builder, (struct autocast){AUTOCAST_BITS16, AUTOCAST_BITS16});
  int64_t in = op_columns(x->shape);
  struct shape shape = layout == OUT_IN ? shape_of(2, out, in) : shape_of(2, in, out);
  struct value *weight = builder_parameter(builder, scope, "weight", shape, pytorch_start(in));
  if (weight != NULL && layout == OUT_IN) weight = op_matrix_transpose(builder, weight);
  struct value *rows = x->shape.rank > 1 ? x : op_reshape(builder, x, shape_of(2, (int64_t)1, in));
  struct value *y = op_matmul(builder, rows, weight);
  if (bias && y != NULL) y = op_add(builder, y, bias_of(builder, scope, in, out));
  return op_reshape(builder, y, op_with_extent(x->shape, x->shape.rank - 1, out));
}

static struct value *build(struct builder *builder, const struct argument *arguments, int count) {
  (void)count;
  return linear(builder, "linear", arguments, OUT_IN, true);
}

static struct value *build_no_bias(struct builder *builder, const struct argument *arguments, int count) {
  (void)count;
  return linear(builder, "linear_no_bias", arguments, OUT_IN, false);
}

/* The layout of GPT-2's published weights: [in][out]. */
static struct value *build_transposed(struct builder *builder, const struct argument *arguments, int count) {
  (void)count;
  return linear(builder, "linear_transposed", arguments, IN_OUT, true);
}

const struct op_file op_file_linear = {
    .name = "linear",
    .functions = (const struct op_function[]){{"linear", .build = build},
                                              {"linear_no_bias", .build = build_no_bias},
                                              {"linear_transposed", .build = build_transposed},
                                              {0}},
};
