#include "gen/ops/support/nodes.h"

#include <assert.h>

struct value *op_add(struct builder *builder, struct value *a, struct value *b) {
  return builder_binary(builder, "add", a, b);
}

struct value *op_sub(struct builder *builder, struct value *a, struct value *b) {
  return builder_binary(builder, "sub", a, b);
}

struct value *op_mul(struct builder *builder, struct value *a, struct value *b) {
  return builder_binary(builder, "mul", a, b);
}

struct value *op_div(struct builder *builder, struct value *a, struct value *b) {
  return builder_binary(builder, "div", a, b);
}

struct value *op_greater(struct builder *builder, struct value *a, struct value *b) {
  return builder_binary(builder, "greater", a, b);
}

struct value *op_matmul(struct builder *builder, struct value *a, struct value *b) {
  return builder_binary(builder, "matmul", a, b);
}

struct value *op_copied(struct builder *builder, struct value *x) {
  return builder_unary(builder, "copy", x);
}

struct value *op_neg(struct builder *builder, struct value *x) {
  return builder_unary(builder, "neg", x);
}

struct value *op_square(struct builder *builder, struct value *x) {
  return builder_unary(builder, "square", x);
}

struct value *op_predict_class(struct builder *builder, struct value *logits) {
  return builder_unary(builder, "predict_class", logits);
}

static struct value *with_real(struct builder *builder, const char *kind, struct value *x, double value) {
  struct attribute attribute = attribute_real("value", value);
  return builder_op(builder, kind, &x, 1, &attribute, 1);
}

struct value *op_scale(struct builder *builder, struct value *x, double value) {
  return with_real(builder, "scale", x, value);
}

struct value *op_shift(struct builder *builder, struct value *x, double value) {
  return with_real(builder, "shift", x, value);
}

static struct value *with_dims(struct builder *builder, const char *kind, struct value *x, struct shape shape) {
  if (x == NULL || shape_equal(x->shape, shape)) return x;
  struct attribute attribute = attribute_ints("dims", shape);
  return builder_op(builder, kind, &x, 1, &attribute, 1);
}

struct value *op_reshape(struct builder *builder, struct value *x, struct shape shape) {
  return with_dims(builder, "reshape", x, shape);
}

struct value *op_broadcast(struct builder *builder, struct value *x, struct shape shape) {
  return with_dims(builder, "broadcast", x, shape);
}

struct value *op_transpose(struct builder *builder, struct value *x, int a, int b) {
  if (a == b) return x;
  struct attribute attributes[] = {attribute_int("a", a), attribute_int("b", b)};
  return builder_op(builder, "transpose", &x, 1, attributes, 2);
}

struct value *op_matrix_transpose(struct builder *builder, struct value *x) {
  return x == NULL ? NULL : op_transpose(builder, x, x->shape.rank - 2, x->shape.rank - 1);
}

struct value *op_clamp(struct builder *builder, struct value *x, double low, double high) {
  struct attribute attributes[] = {attribute_real("low", low), attribute_real("high", high)};
  return builder_op(builder, "clamp", &x, 1, attributes, 2);
}

/* x without the dimensions `axes`. */
static struct shape without(struct shape shape, struct shape axes) {
  unsigned gone = 0;
  for (int i = 0; i < axes.rank; i++) gone |= 1u << axes.dim[i];
  struct shape left = {0};
  for (int i = 0; i < shape.rank; i++)
    if (!(gone >> i & 1)) left.dim[left.rank++] = shape.dim[i];
  return left;
}

struct value *op_sum(struct builder *builder, struct value *x, struct shape axes) {
  if (x == NULL || axes.rank == 0) return x;
  struct shape left = without(x->shape, axes);
  if (shape_count(left) == shape_count(x->shape)) return op_reshape(builder, x, left);
  struct attribute attribute = attribute_ints("axes", axes);
  return builder_op(builder, "sum", &x, 1, &attribute, 1);
}

struct value *op_mean_all(struct builder *builder, struct value *x) {
  if (x == NULL) return NULL;
  struct shape axes = {.rank = x->shape.rank};
  for (int i = 0; i < axes.rank; i++) axes.dim[i] = i;
  return op_scale(builder, op_sum(builder, x, axes), 1 / (double)shape_count(x->shape));
}

struct value *op_unbroadcast(struct builder *builder, struct value *x, struct shape shape) {
  if (x == NULL || shape_equal(x->shape, shape)) return x;
  struct shape axes = {0};
  int added = x->shape.rank - shape.rank;
  for (int i = 0; i < x->shape.rank; i++)
    if (i < added || (shape.dim[i - added] == 1 && x->shape.dim[i] != 1)) axes.dim[axes.rank++] = i;
  return op_reshape(builder, op_sum(builder, x, axes), shape);
}

struct value *op_constant(struct builder *builder, double value, struct shape shape) {
  struct attribute attributes[] = {attribute_real("value", value), attribute_ints("dims", shape)};
  return builder_op(builder, "constant", NULL, 0, attributes, 2);
}

struct value *op_gather(struct builder *builder, struct value *x, int axis, struct value *index) {
  struct attribute attribute = attribute_int("axis", axis);
  return builder_op(builder, "gather", (struct value *[]){x, index}, 2, &attribute, 1);
}

struct value *op_arange(struct builder *builder, int64_t count) {
  struct attribute attribute = attribute_int("count", count);
  return builder_op(builder, "arange", NULL, 0, &attribute, 1);
}

struct value *op_slice(struct builder *builder, struct value *x, int axis, int64_t start, int64_t count) {
  struct attribute attributes[] = {attribute_int("axis", axis), attribute_int("start", start),
                                   attribute_int("count", count)};
  return builder_op(builder, "slice", &x, 1, attributes, 3);
}

struct value *op_pad(struct builder *builder, struct value *x, int axis, int64_t before, int64_t after) {
  if (x == NULL || before + after == 0) return x;
  struct attribute attributes[] = {attribute_int("axis", axis), attribute_int("start", before),
                                   attribute_int("size", before + x->shape.dim[axis] + after)};
  return builder_op(builder, "slice_backward", &x, 1, attributes, 3);
}

struct value *op_apply(struct builder *builder, const char *name, struct value *const *tensors, int n) {
  struct argument arguments[4] = {0};
  assert(n <= 4);
  for (int i = 0; i < n; i++) {
    if (tensors[i] == NULL) return NULL;
    arguments[i] = (struct argument){.kind = ARGUMENT_TENSOR, .tensor = tensors[i]};
  }
  return builder_function(builder, op_function_find(name), arguments, n);
}

struct value *op_dynamic_slice(struct builder *builder, struct value *x, struct value *at, int axis, int64_t count) {
  struct attribute attributes[] = {attribute_int("axis", axis), attribute_int("count", count)};
  return builder_op(builder, "dynamic_slice", (struct value *[]){x, at}, 2, attributes, 2);
}

struct value *op_keep(struct builder *builder, struct value *x, struct value *kept) {
  return builder_op(builder, "keep", (struct value *[]){x, kept}, 2, NULL, 0);
}

struct value *op_exchange_whole(struct builder *builder, const char *kind, struct value *x, int64_t axis) {
  const struct attribute along = attribute_int("axis", axis);
  return builder_op(builder, kind, &x, 1, &along, 1);
}

struct value *op_exchange_parts(struct builder *builder, const char *kind, struct value *x, struct op_parts parts) {
  const struct attribute attributes[] = {
      attribute_int("axis", parts.axis),         attribute_int("ranks", parts.ranks),
      attribute_int("dim", parts.dim),           attribute_int("blocks", parts.blocks),
      attribute_int("partial", parts.partial),   attribute_int("remade", parts.remade),
      attribute_int("balanced", parts.balanced),
  };
  return builder_op(builder, kind, &x, 1, attributes, sizeof attributes / sizeof *attributes);
}

struct value *op_gather_chunks(struct builder *builder, struct value *x, int dim, int64_t axis, int64_t ranks) {
  const int64_t chunks = 2 * ranks, length = x->shape.dim[dim] / 2;
  const struct op_parts parted = {.axis = axis, .ranks = ranks, .dim = dim, .blocks = 1, .partial = true};
  struct attribute along = attribute_int("axis", dim);
  struct value *all = op_exchange_parts(builder, "all_gather", x, parted);
  struct value **parts = arena_alloc(builder_arena(builder), (size_t)chunks * sizeof *parts);
  for (int64_t c = 0; c < chunks; c++) {
    int64_t at = c < ranks ? 2 * c : 2 * (chunks - 1 - c) + 1;
    parts[c] = op_slice(builder, all, dim, at * length, length);
  }
  return builder_op(builder, "concat", parts, (int)chunks, &along, 1);
}

struct value *op_all_to_all(struct builder *builder, struct value *x, int64_t axis, int64_t ranks, int split,
                            int gathered) {
  const struct attribute attributes[] = {attribute_int("axis", axis), attribute_int("ranks", ranks),
                                         attribute_int("split", split), attribute_int("gathered", gathered)};
  return builder_op(builder, "all_to_all", &x, 1, attributes, 4);
}
