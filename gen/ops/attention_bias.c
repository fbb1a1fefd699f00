/* Attention with numbers added to its scores, written out: softmax(q k^T / sqrt(d) + bias) v. */
#include <math.h>

#include "gen/ops/support/support.h"

static bool check_heads(struct builder *builder, struct shape q, struct shape k, struct shape v) {
  bool fits = q.rank == 4 && k.rank == 4 && shape_equal(k, v) && q.dim[0] == k.dim[0] && q.dim[3] == k.dim[3];
  if (fits && q.dim[1] % k.dim[1] == 0) return true;
  struct arena *arena = builder_arena(builder);
  builder_error(builder,
                "attention_bias: q %s, k %s and v %s must be [batch][heads][positions][d], q's heads a multiple of k's",
                shape_text(arena, q), shape_text(arena, k), shape_text(arena, v));
  return false;
}

/* attention_bias(q, k, v, bias): heads that share keys are one after the other in the matmuls. */
static struct value *build(struct builder *builder, const struct argument *arguments, int count) {
  (void)count;
  struct value *q = op_tensor(arguments, 0), *k = op_tensor(arguments, 1), *v = op_tensor(arguments, 2);
  struct value *bias = op_tensor(arguments, 3);
  if (q == NULL || k == NULL || v == NULL || bias == NULL || !check_heads(builder, q->shape, k->shape, v->shape))
    return NULL;
  int64_t batch = q->shape.dim[0], heads = q->shape.dim[1], t = q->shape.dim[2], d = q->shape.dim[3];
  int64_t shared = k->shape.dim[1], s = k->shape.dim[2], rows = heads / shared * t;
  struct value *scores =
      op_matmul(builder, op_reshape(builder, q, shape_of(4, batch, shared, rows, d)), op_matrix_transpose(builder, k));
  scores = op_scale(builder, scores, 1 / sqrt((double)d));
  struct shape shape = shape_of(4, batch, heads, t, s);
  scores = op_add(builder, op_reshape(builder, scores, shape), bias);
  if (scores != NULL && !shape_equal(scores->shape, shape)) {
    builder_error(builder, "attention_bias: the bias %s must broadcast to the scores' %s",
                  shape_text(builder_arena(builder), bias->shape), shape_text(builder_arena(builder), shape));
    return NULL;
  }
  struct value *weights = builder_unary(builder, "softmax", scores);
  weights = op_reshape(builder, weights, shape_of(4, batch, shared, rows, s));
  return op_reshape(builder, op_matmul(builder, weights, v), q->shape);
}

/* padding_bias(mask): 0 where the mask [batch][keys] is 1, the lowest float32 where it is 0: [batch][1][1][keys] */
static struct value *build_padding(struct builder *builder, const struct argument *arguments, int count) {
  (void)count;
  struct value *mask = op_tensor(arguments, 0);
  if (mask == NULL) return NULL;
  if (mask->shape.rank != 2) {
    builder_error(builder, "padding_bias: the mask %s must be [batch][keys]",
                  shape_text(builder_arena(builder), mask->shape));
    return NULL;
  }
  struct shape shape = shape_of(4, mask->shape.dim[0], (int64_t)1, (int64_t)1, mask->shape.dim[1]);
  return op_reshape(builder, op_scale(builder, op_shift(builder, mask, -1), 0x1.fffffep127), shape);
}

const struct op_file op_file_attention_bias = {
    .name = "attention_bias",
    .functions =
        (const struct op_function[]){{"attention_bias", .build = build}, {"padding_bias", .build = build_padding}, {0}},
};
