/* The mean over rows of max(|a - p| - |a - n| + margin, 0) (Schroff, Kalenichenko, Philbin, arXiv:1503.03832, eq. 3,
 * with distances that are not squared, as PyTorch); 1e-6 is added to each difference, which keeps the root off zero. */
#include "gen/ops/support/support.h"

static struct value *distance(struct builder *builder, struct value *a, struct value *b) {
  struct value *d = op_shift(builder, op_sub(builder, a, b), 1e-6);
  struct shape last = shape_of(1, (int64_t)(a->shape.rank - 1));
  return builder_unary(builder, "sqrt", op_sum(builder, op_square(builder, d), last));
}

/* triplet_margin_loss(anchor, positive, negative, margin) */
static struct value *build(struct builder *builder, const struct argument *arguments, int count) {
  (void)count;
  builder_autocast(builder, (struct autocast){AUTOCAST_FLOAT32, AUTOCAST_FLOAT32});
  struct value *anchor = op_tensor(arguments, 0), *near = op_tensor(arguments, 1), *far = op_tensor(arguments, 2);
  if (!op_same_shape(builder, "triplet_margin_loss", anchor, near)) return NULL;
  if (!op_same_shape(builder, "triplet_margin_loss", anchor, far)) return NULL;
  if (anchor->shape.rank < 1) {
    builder_error(builder, "triplet_margin_loss: a scalar has no rows");
    return NULL;
  }
  struct value *further = op_sub(builder, distance(builder, anchor, near), distance(builder, anchor, far));
  return op_mean_all(builder, builder_unary(builder, "relu", op_shift(builder, further, arguments[3].real)));
}

const struct op_file op_file_triplet_margin_loss = {
    .name = "triplet_margin_loss",
    .functions = (const struct op_function[]){{"triplet_margin_loss", .build = build}, {0}},
};
