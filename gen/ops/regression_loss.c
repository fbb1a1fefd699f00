/* Losses of numbers: the mean over all positions of the square, and of the size, of d = prediction - target. */
#include "gen/ops/support/support.h"

/* prediction - target; NULL after an error. */
static struct value *difference(struct builder *builder, const char *function, const struct argument *arguments) {
  struct value *x = op_tensor(arguments, 0), *target = op_tensor(arguments, 1);
  return op_same_shape(builder, function, x, target) ? op_sub(builder, x, target) : NULL;
}

static struct value *build_mse(struct builder *builder, const struct argument *arguments, int count) {
  (void)count;
  builder_autocast(builder, (struct autocast){AUTOCAST_FLOAT32, AUTOCAST_FLOAT32});
  return op_mean_all(builder, op_square(builder, difference(builder, "mse_loss", arguments)));
}

static struct value *build_l1(struct builder *builder, const struct argument *arguments, int count) {
  (void)count;
  builder_autocast(builder, (struct autocast){AUTOCAST_FLOAT32, AUTOCAST_FLOAT32});
  return op_mean_all(builder, builder_unary(builder, "abs", difference(builder, "l1_loss", arguments)));
}

const struct op_file op_file_regression_loss = {
    .name = "regression_loss",
    .functions = (const struct op_function[]){{"mse_loss", .build = build_mse}, {"l1_loss", .build = build_l1}, {0}},
};
