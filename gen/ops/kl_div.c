/* The Kullback-Leibler divergence of a distribution q from targets p, both along the last dimension, by PyTorch's
 * convention: q comes as logarithms, and the mean of p (ln p - ln q) is over all positions, not over distributions. */
#include <float.h>

#include "gen/ops/support/support.h"

/* p (ln p - ln q), 0 where p is 0. */
static struct value *build(struct builder *builder, const struct argument *arguments, int count) {
  (void)count;
  builder_autocast(builder, (struct autocast){AUTOCAST_FLOAT32, AUTOCAST_FLOAT32});
  struct value *log_q = op_tensor(arguments, 0), *p = op_tensor(arguments, 1);
  if (!op_same_shape(builder, "kl_div", log_q, p)) return NULL;
  struct value *smallest = op_constant(builder, FLT_MIN, (struct shape){0});
  struct value *log_p = builder_unary(builder, "log", builder_binary(builder, "maximum", p, smallest));
  return op_mean_all(builder, op_mul(builder, p, op_sub(builder, log_p, log_q)));
}

/* The same where p comes as logarithms too. */
static struct value *build_log_target(struct builder *builder, const struct argument *arguments, int count) {
  (void)count;
  builder_autocast(builder, (struct autocast){AUTOCAST_FLOAT32, AUTOCAST_FLOAT32});
  struct value *log_q = op_tensor(arguments, 0), *log_p = op_tensor(arguments, 1);
  if (!op_same_shape(builder, "kl_div_log_target", log_q, log_p)) return NULL;
  struct value *p = builder_unary(builder, "exp", log_p);
  return op_mean_all(builder, op_mul(builder, p, op_sub(builder, log_p, log_q)));
}

const struct op_file op_file_kl_div = {
    .name = "kl_div",
    .functions =
        (const struct op_function[]){{"kl_div", .build = build}, {"kl_div_log_target", .build = build_log_target}, {0}},
};
