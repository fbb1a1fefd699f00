/* Huber's function of d = prediction - target (The Annals of Mathematical Statistics 35, 1964): d^2 / 2 within delta,
 * delta (|d| - delta / 2) outside; its gradient is d clamped to [-delta, delta]. The losses are its mean over all
 * positions, and that divided by delta: the smooth l1 (Girshick, arXiv:1504.08083, eq. 3). */
#include <math.h>

#include "gen/ops/support/elementwise.h"
#include "gen/stablehlo/stablehlo.h"

static double apply(const struct node *node, const double *x) {
  double delta = node_real(node, "delta"), d = fabs(x[0]);
  return d < delta ? d * d / 2 : delta * (d - delta / 2);
}

static void gradient(struct builder *builder, const struct node *node, struct value *const *dy, struct value **dx) {
  double delta = node_real(node, "delta");
  dx[0] = op_mul(builder, dy[0], op_clamp(builder, node->inputs[0], -delta, delta));
}

static void lower(struct stablehlo *hlo) {
  const double delta = node_real(hlo_node(hlo), "delta");
  const struct hlo d = hlo_unary(hlo, "abs", hlo_input(hlo, 0));
  const struct hlo square = hlo_mul(hlo, hlo_mul(hlo, d, d), hlo_number(0.5));
  const struct hlo line = hlo_mul(hlo, hlo_sub(hlo, d, hlo_number(delta / 2)), hlo_number(delta));
  hlo_result(hlo, 0, hlo_select(hlo, hlo_compare(hlo, "LT", d, hlo_number(delta)), square, line));
}

static const struct op_kind kind = {
    OP_UNARY,
    .name = "huber",
    .lower.write = lower,
    .reference.apply = apply,
    .gradient = gradient,
    .types.autocast = {AUTOCAST_FLOAT32, AUTOCAST_FLOAT32},
};

/* The mean of Huber's function; NULL after an error. */
static struct value *huber(struct builder *builder, const char *function, const struct argument *arguments) {
  double delta = arguments[2].real;
  if (!(delta > 0)) {
    builder_error(builder, "%s: where the square becomes a line must be above 0, not %g", function, delta);
    return NULL;
  }
  struct value *x = op_tensor(arguments, 0), *target = op_tensor(arguments, 1);
  if (!op_same_shape(builder, function, x, target)) return NULL;
  struct value *d = op_sub(builder, x, target);
  struct attribute attribute = attribute_real("delta", delta);
  return op_mean_all(builder, builder_op(builder, "huber", &d, 1, &attribute, 1));
}

static struct value *build_huber(struct builder *builder, const struct argument *arguments, int count) {
  (void)count;
  builder_autocast(builder, (struct autocast){AUTOCAST_FLOAT32, AUTOCAST_FLOAT32});
  return huber(builder, "huber_loss", arguments);
}

static struct value *build_smooth_l1(struct builder *builder, const struct argument *arguments, int count) {
  (void)count;
  builder_autocast(builder, (struct autocast){AUTOCAST_FLOAT32, AUTOCAST_FLOAT32});
  return op_scale(builder, huber(builder, "smooth_l1_loss", arguments), 1 / arguments[2].real);
}

const struct op_file op_file_huber = {
    .name = "huber",
    .kinds = (const struct op_kind *const[]){&kind, NULL},
    .functions = (const struct op_function[]){{"huber_loss", .build = build_huber},
                                              {"smooth_l1_loss", .build = build_smooth_l1},
                                              {0}},
};
