/* Rows of length 1, and the cosine between rows: x / max(|x|, eps) over the last dimension. The maximum is under the
 * root, so that a row of zeros has no gradient instead of an infinite one. */
#include "gen/ops/support/support.h"

/* 1 / max(|x|, eps) for each row, [...][1]. */
static struct value *inverse_length(struct builder *builder, struct value *x, double eps) {
  int last = x->shape.rank - 1;
  struct value *squares = op_sum(builder, op_square(builder, x), shape_of(1, (int64_t)last));
  squares = op_reshape(builder, squares, op_with_extent(x->shape, last, 1));
  struct value *least = op_constant(builder, eps * eps, (struct shape){0});
  return builder_unary(builder, "rsqrt", builder_binary(builder, "maximum", squares, least));
}

static bool has_rows(struct builder *builder, const char *function, const struct value *x) {
  if (x == NULL || x->shape.rank >= 1) return x != NULL;
  builder_error(builder, "%s: a scalar has no rows", function);
  return false;
}

/* eps is 1e-12, as in torch.nn.functional.normalize. */
static struct value *build(struct builder *builder, const struct argument *arguments, int count) {
  (void)count;
  struct value *x = op_tensor(arguments, 0);
  return has_rows(builder, "normalize", x) ? op_mul(builder, x, inverse_length(builder, x, 1e-12)) : NULL;
}

/* eps is 1e-8, as in torch.nn.functional.cosine_similarity. */
static struct value *build_cosine(struct builder *builder, const struct argument *arguments, int count) {
  (void)count;
  struct value *a = op_tensor(arguments, 0), *b = op_tensor(arguments, 1);
  if (!has_rows(builder, "cosine_similarity", a) || !op_same_shape(builder, "cosine_similarity", a, b)) return NULL;
  struct value *lengths = op_mul(builder, inverse_length(builder, a, 1e-8), inverse_length(builder, b, 1e-8));
  struct shape last = shape_of(1, (int64_t)(a->shape.rank - 1));
  struct value *dot = op_sum(builder, op_mul(builder, a, b), last);
  return dot == NULL ? NULL : op_mul(builder, dot, op_reshape(builder, lengths, dot->shape));
}

const struct op_file op_file_normalize = {
    .name = "normalize",
    .functions =
        (const struct op_function[]){{"normalize", .build = build}, {"cosine_similarity", .build = build_cosine}, {0}},
};
