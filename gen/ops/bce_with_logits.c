/* Binary cross-entropy of a logit x and a target z in [0, 1]: y = -z ln s(x) - (1 - z) ln(1 - s(x)), s(x) = 1 / (1 +
 * e^-x), written as max(x, 0) - x z + ln(1 + e^-|x|), which cancels nowhere; dx = dy (s(x) - z), dz = -dy x. */
#include <math.h>

#include "gen/ops/support/elementwise.h"
#include "gen/stablehlo/stablehlo.h"

static double apply(const struct node *node, const double *v) {
  (void)node;
  double x = v[0], z = v[1];
  return fmax(x, 0) - x * z + log1p(exp(-fabs(x)));
}

static void gradient(struct builder *builder, const struct node *node, struct value *const *dy, struct value **dx) {
  struct value *x = node->inputs[0], *z = node->inputs[1];
  if (builder_wants_gradient(builder, x)) {
    struct value *slope = op_sub(builder, builder_unary(builder, "sigmoid", x), z);
    dx[0] = op_mul(builder, dy[0], slope);
  }
  if (builder_wants_gradient(builder, z)) dx[1] = op_neg(builder, op_mul(builder, dy[0], x));
}

static int infer(struct arena *arena, const struct node *node, struct shape *shapes, enum dtype *dtypes,
                 const char **error) {
  if (!op_check_shape(arena, node, 1, node->inputs[0]->shape, "one for each logit", error)) return 0;
  return op_infer_elementwise(arena, node, shapes, dtypes, error);
}

static void lower(struct stablehlo *hlo) {
  const struct hlo x = hlo_input(hlo, 0), z = hlo_input(hlo, 1);
  const struct hlo falling = hlo_unary(hlo, "exponential", hlo_unary(hlo, "negate", hlo_unary(hlo, "abs", x)));
  const struct hlo rest = hlo_unary(hlo, "log_plus_one", falling);
  const struct hlo linear = hlo_sub(hlo, hlo_binary(hlo, "maximum", x, hlo_number(0)), hlo_mul(hlo, x, z));
  hlo_result(hlo, 0, hlo_add(hlo, linear, rest));
}

static const struct op_kind kind = {
    .name = "bce_with_logits",
    .lower.write = lower,
    .class = OP_ELEMENTWISE,
    .input_names = {"logits", "targets"},
    .output_names = {"y"},
    .infer = infer,
    .gradient = gradient,
    .memory.in_place = {1},
    .types.autocast = {AUTOCAST_FLOAT32, AUTOCAST_FLOAT32},
    .reference.apply = apply,
    .reference.evaluate = op_reference_elementwise,
};

static struct value *build(struct builder *builder, const struct argument *arguments, int count) {
  (void)count;
  builder_autocast(builder, (struct autocast){AUTOCAST_FLOAT32, AUTOCAST_FLOAT32});
  struct value *logits = op_tensor(arguments, 0), *targets = op_tensor(arguments, 1);
  return op_mean_all(builder, builder_binary(builder, "bce_with_logits", logits, targets));
}

/* With a weight w of the positive class: (1 - z) softplus(x) + w z softplus(-x). */
static struct value *build_weighted(struct builder *builder, const struct argument *arguments, int count) {
  (void)count;
  builder_autocast(builder, (struct autocast){AUTOCAST_FLOAT32, AUTOCAST_FLOAT32});
  struct value *x = op_tensor(arguments, 0), *z = op_tensor(arguments, 1), *weight = op_tensor(arguments, 2);
  if (!op_same_shape(builder, "binary_cross_entropy_with_logits_weighted", x, z)) return NULL;
  struct value *negative = op_shift(builder, op_neg(builder, z), 1);
  negative = op_mul(builder, negative, builder_unary(builder, "softplus", x));
  struct value *positive = builder_unary(builder, "softplus", op_neg(builder, x));
  positive = op_mul(builder, op_mul(builder, z, weight), positive);
  struct value *y = op_add(builder, negative, positive);
  if (y == NULL || shape_equal(y->shape, x->shape)) return op_mean_all(builder, y);
  builder_error(builder, "binary_cross_entropy_with_logits_weighted: the weight %s must broadcast to the logits' %s",
                shape_text(builder_arena(builder), weight->shape), shape_text(builder_arena(builder), x->shape));
  return NULL;
}

const struct op_file op_file_bce_with_logits = {
    .name = "bce_with_logits",
    .kinds = (const struct op_kind *const[]){&kind, NULL},
    .functions = (const struct op_function[]){{"binary_cross_entropy_with_logits", .build = build},
                                              {"binary_cross_entropy_with_logits_weighted", .build = build_weighted},
                                              {0}},
};
