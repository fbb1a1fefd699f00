/* y = the larger of a and b; the gradient goes to it, half to each where they are equal. */
#include "gen/ops/support/elementwise.h"

static double apply(const struct node *node, const double *x) {
  (void)node;
  return x[0] > x[1] ? x[0] : x[1];
}

/* dy where `mine` is the result, half of it where both are: (1 + [mine > other] - [other > mine]) / 2, as PyTorch. */
static struct value *share(struct builder *builder, struct value *dy, struct value *mine, struct value *other) {
  struct value *wins = op_greater(builder, mine, other);
  struct value *loses = op_greater(builder, other, mine);
  struct value *twice = op_shift(builder, op_sub(builder, wins, loses), 1);
  return op_mul(builder, dy, op_scale(builder, twice, 0.5));
}

static void gradient(struct builder *builder, const struct node *node, struct value *const *dy, struct value **dx) {
  struct value *a = node->inputs[0], *b = node->inputs[1];
  if (builder_wants_gradient(builder, a)) dx[0] = op_unbroadcast(builder, share(builder, dy[0], a, b), a->shape);
  if (builder_wants_gradient(builder, b)) dx[1] = op_unbroadcast(builder, share(builder, dy[0], b, a), b->shape);
}

/* A count that is kept from being 0, where nothing is counted. */
static struct mean mean(const struct node *node, const struct mean *inputs) {
  struct mean none = {.form = MEAN_NONE};
  bool bounds = inputs[1].form == MEAN_SAME && !node->inputs[0]->differentiable;
  return bounds ? op_mean_kept(node, inputs) : none;
}

static const struct op_kind kind = {
    OP_BINARY, .name = "maximum", .apply = apply, .gradient = gradient, .mean = mean,
};

const struct op_file op_file_maximum = {
    .name = "maximum",
    .kinds = (const struct op_kind *const[]){&kind, NULL},
    .functions = (const struct op_function[]){{"maximum", .kind = &kind}, {0}},
};
