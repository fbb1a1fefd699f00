/* Causal attention (gen/ops/attention.c) whose scores are capped before the softmax, cap tanh(score / cap), as Gemma 2
 * does (arXiv:2408.00118, section 2). Where a program runs over a whole sequence it is written out; where it decodes
 * position by position it is attention_cached. */
#include <math.h>
#include <string.h>

#include "gen/ops/support/attention.h"

double op_attention_cap(const struct node *node) {
  for (int i = 0; i < node->n_attributes; i++)
    if (strcmp(node->attributes[i].name, "cap") == 0) return node->attributes[i].real;
  return 0;
}

bool op_attention_lacks_kernel(const struct node *node) {
  return op_attention_cap(node) > 0;
}

/* [t][t]: far below all scores where a key comes after the query, or `window` or more before it. */
static struct value *hidden(struct builder *builder, int64_t t, int64_t window) {
  struct value *numbers = op_arange(builder, t), *position = op_apply(builder, "cast_float", &numbers, 1);
  struct value *rows = op_reshape(builder, position, shape_of(2, t, (int64_t)1));
  struct value *before = op_sub(builder, rows, op_reshape(builder, position, shape_of(2, (int64_t)1, t)));
  struct value *unseen = op_greater(builder, op_constant(builder, 0, shape_of(1, (int64_t)1)), before);
  if (window > 0 && window < t)
    unseen = op_add(builder, unseen,
                    op_greater(builder, before, op_constant(builder, (double)window - 0.5, shape_of(1, (int64_t)1))));
  return op_scale(builder, unseen, -1e30);
}

/* In float32; heads that share keys are one after the other in the matmuls. */
struct value *op_attention_written_out(struct builder *builder, const struct node *node) {
  struct value *in[3];
  for (int i = 0; i < 3; i++) in[i] = builder_cast(builder, node->inputs[i], DTYPE_FLOAT32);
  const struct shape q = in[0]->shape;
  const int64_t batch = q.dim[0], heads = q.dim[1], t = q.dim[2], shared = in[1]->shape.dim[1];
  const struct shape grouped = shape_of(4, batch, shared, heads / shared * t, q.dim[3]);
  const double cap = op_attention_cap(node);
  struct value *scores = op_matmul(builder, op_reshape(builder, in[0], grouped), op_matrix_transpose(builder, in[1]));
  scores = op_scale(builder, scores, node_real(node, "scale") / cap);
  scores = op_scale(builder, builder_unary(builder, "tanh", scores), cap);
  scores = op_add(builder, op_reshape(builder, scores, shape_of(4, batch, heads, t, t)),
                  hidden(builder, t, node_int(node, "window")));
  struct value *weights = builder_unary(builder, "softmax", scores);
  weights = op_reshape(builder, weights, shape_of(4, batch, shared, heads / shared * t, t));
  return builder_cast(builder, op_reshape(builder, op_matmul(builder, weights, in[2]), q), node->outputs[0]->dtype);
}

/* attention_capped(q, k, v, window, scale, cap) */
static struct value *build(struct builder *builder, const struct argument *arguments, int count) {
  struct value *inputs[] = {op_tensor(arguments, 0), op_tensor(arguments, 1), op_tensor(arguments, 2)};
  const int64_t window = arguments[3].integer;
  const double cap = arguments[5].real;
  (void)count;
  if (window < 1) {
    builder_error(builder, "attention_capped: a window must hold at least 1 key, not %lld", (long long)window);
    return NULL;
  }
  if (!(cap > 0) || isinf(cap)) {
    builder_error(builder, "attention_capped: scores are capped at a number above 0, not %g", cap);
    return NULL;
  }
  if (inputs[0] == NULL || inputs[1] == NULL || inputs[2] == NULL) return NULL;
  const int64_t positions = inputs[0]->shape.rank > 2 ? inputs[0]->shape.dim[2] : 0;
  struct attribute attributes[] = {attribute_int("causal", 1), attribute_int("window", window < positions ? window : 0),
                                   attribute_real("scale", arguments[4].real), attribute_real("cap", cap)};
  return builder_op(builder, "attention", inputs, 3, attributes, 4);
}

const struct op_file op_file_attention_capped = {
    .name = "attention_capped",
    .functions = (const struct op_function[]){{"attention_capped", .build = build}, {0}},
};
