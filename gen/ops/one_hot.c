/* y[…][c] = 1 where the token is c, else 0: a comparison with 0, 1, …, and so without a gradient. */
#include "gen/ops/support/support.h"

/* one_hot(tokens, classes) */
static struct value *build(struct builder *builder, const struct argument *arguments, int count) {
  (void)count;
  struct value *tokens = op_tensor(arguments, 0);
  int64_t classes = arguments[1].integer;
  if (tokens == NULL) return NULL;
  if (classes < 1 || tokens->shape.rank == MAX_RANK) {
    builder_error(builder, "one_hot: %lld classes of tokens %s", (long long)classes,
                  shape_text(builder_arena(builder), tokens->shape));
    return NULL;
  }
  struct shape column = tokens->shape;
  column.dim[column.rank++] = 1;
  struct value *own = op_reshape(builder, builder_cast(builder, tokens, DTYPE_FLOAT32), column);
  struct value *each = builder_cast(builder, op_arange(builder, classes), DTYPE_FLOAT32);
  return builder_binary(builder, "equal", own, each);
}

const struct op_file op_file_one_hot = {
    .name = "one_hot",
    .functions = (const struct op_function[]){{"one_hot", .build = build}, {0}},
};
