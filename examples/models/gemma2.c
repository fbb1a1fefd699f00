/* Gemma 2 (Gemma Team, arXiv:2408.00118): the tensor names and the arithmetic of transformers' Gemma2ForCausalLM, so
 * that its checkpoints load from their model.safetensors. Every second layer sees the last `sliding_window` keys alone,
 * each part has a norm before and after it, and scores of attention and logits are capped by tanh; a cap of 0: they are
 * not.
 *
 * B batch, T tokens of a sequence, C hidden_size, H heads of queries, K heads of keys and values, D head_dim. */
#include <accel/model.h>
#include <math.h>

#include "rope.h"

enum layer_type { LAYER_BY_PATTERN, LAYER_SLIDING_ATTENTION, LAYER_FULL_ATTENTION };

struct config {
  int num_hidden_layers, num_attention_heads, num_key_value_heads, head_dim;
  int hidden_size, intermediate_size, vocab_size, sliding_window;
  double rms_norm_eps, initializer_range, query_pre_attn_scalar;
  double attn_logit_softcapping, final_logit_softcapping;
  enum layer_type layer_types[128]; /* LAYER_BY_PATTERN: sliding, full, sliding, full, ... */
  struct rope_config rope;
};

const struct config defaults = {
    .sliding_window = 4096,
    .rms_norm_eps = 1e-6,
    .initializer_range = 0.02,
    .query_pre_attn_scalar = 256,
    .attn_logit_softcapping = 50,
    .final_logit_softcapping = 30,
    .layer_types = {LAYER_BY_PATTERN},
    .rope = ROPE_DEFAULTS(10000),
};

#include "gemma.h"

const char *const architectures[] = {"Gemma2ForCausalLM"};

/* What a published config.json says otherwise than by a field's own name. */
const struct published published[] = {
    {"head_dim", "head_dim", .absent = "256"},
    {"attn_logit_softcapping", "attn_logit_softcapping", .absent = "50", .null = "0"},
    {"final_logit_softcapping", "final_logit_softcapping", .absent = "30", .null = "0"},
    {"cache_implementation"},
    GEMMA_PUBLISHED,
    ROPE_PUBLISHED("10000"),
};

/* cap * tanh(x / cap), within (-cap, cap). */
static tensor capped(tensor x, double cap) {
  return scale(tanh_of(scale(x, 1 / cap)), cap);
}

/* [T][T]: far below all scores where a key comes after the query, or is `window` or more before it. */
static tensor hidden(int positions, int window) {
  tensor position = cast_float(arange(positions));
  tensor before = sub(reshape(position, positions, 1), reshape(position, 1, positions));
  return scale(add(less(before, constant(0, 1)), greater_equal(before, constant(window, 1))), -1e30);
}

/* [B][K][T][D] as [B][H][T][D]: H / K heads of queries share keys and values. */
static tensor repeated(tensor x, struct config c) {
  int shared = c.num_attention_heads / c.num_key_value_heads, batch = dim(x, 0), positions = dim(x, 2);
  if (shared == 1) return x;
  x = reshape(x, batch, c.num_key_value_heads, 1, positions, c.head_dim);
  x = add(x, constant(0, 1, 1, shared, 1, 1));
  return reshape(x, batch, c.num_attention_heads, positions, c.head_dim);
}

/* Attention whose scores are capped. */
static tensor attend_capped(tensor q, tensor k, tensor v, int window, struct config c) {
  tensor scores = scale(matmul_transposed(q, repeated(k, c)), 1 / sqrt(c.query_pre_attn_scalar));
  tensor weights = softmax(add(capped(scores, c.attn_logit_softcapping), hidden(dim(q, 2), window)));
  return matmul(weights, repeated(v, c));
}

static tensor attend(scope s, tensor x, struct rope rope, int window, struct config c) {
  tensor q = linear_no_bias(at(s, "q_proj"), x, c.num_attention_heads * c.head_dim);
  tensor k = linear_no_bias(at(s, "k_proj"), x, c.num_key_value_heads * c.head_dim);
  tensor v = heads(linear_no_bias(at(s, "v_proj"), x, c.num_key_value_heads * c.head_dim), c.num_key_value_heads);
  q = rotary(heads(q, c.num_attention_heads), rope.cos, rope.sin);
  k = rotary(heads(k, c.num_key_value_heads), rope.cos, rope.sin);
  tensor y = c.attn_logit_softcapping > 0 ? attend_capped(q, k, v, window, c)
                                          : attend_window(q, k, v, window, c.query_pre_attn_scalar);
  return linear_no_bias(at(s, "o_proj"), merge(y), c.hidden_size);
}

static tensor block(scope s, tensor x, struct rope rope, int window, struct config c) {
  tensor a = attend(at(s, "self_attn"), norm(at(s, "input_layernorm"), x, c), rope, window, c);
  x = add(x, norm(at(s, "post_attention_layernorm"), a, c));
  tensor m = mlp(at(s, "mlp"), norm(at(s, "pre_feedforward_layernorm"), x, c), c);
  return add(x, norm(at(s, "post_feedforward_layernorm"), m, c));
}

static bool slides(int layer, struct config c) {
  if (c.layer_types[layer] != LAYER_BY_PATTERN) return c.layer_types[layer] == LAYER_SLIDING_ATTENTION;
  return layer % 2 == 0;
}

/* tokens [B][T] to logits [B][T][vocab_size]. */
tensor predict(scope s, struct config c, tensor tokens) {
  s = init_normal(s, c.initializer_range);
  int positions = dim(tokens, 1);
  struct rope rope = rope_angles(c.rope, positions, c.head_dim);
  tensor x = embedding(at(s, "model.embed_tokens"), tokens, c.vocab_size, c.hidden_size);
  x = scale(x, sqrt((double)c.hidden_size));
  for (int i = 0; i < c.num_hidden_layers; i++)
    x = block(nth(s, "model.layers", i), x, rope, slides(i, c) ? c.sliding_window : positions, c);
  x = norm(at(s, "model.norm"), x, c);
  x = matmul_transposed(x, parameter(at(s, "model.embed_tokens"), "weight", c.vocab_size, c.hidden_size));
  return c.final_logit_softcapping > 0 ? capped(x, c.final_logit_softcapping) : x;
}

tensor model(scope s, struct config c, tensor tokens, tensor targets) {
  return cross_entropy(predict(s, c, tokens), targets);
}
