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
  int hidden_size, intermediate_size, vocab_size, sliding_window, query_pre_attn_scalar;
  double rms_norm_eps, initializer_range;
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
    {"model_type", .is = "gemma2"},
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

static tensor attend(scope s, tensor x, struct rope rope, int window, struct config c) {
  tensor q = linear_no_bias(at(s, "q_proj"), x, c.num_attention_heads * c.head_dim);
  tensor k = linear_no_bias(at(s, "k_proj"), x, c.num_key_value_heads * c.head_dim);
  tensor v = heads(linear_no_bias(at(s, "v_proj"), x, c.num_key_value_heads * c.head_dim), c.num_key_value_heads);
  q = rotary(heads(q, c.num_attention_heads), rope.cos, rope.sin);
  k = rotary(heads(k, c.num_key_value_heads), rope.cos, rope.sin);
  double cap = c.attn_logit_softcapping, scalar = c.query_pre_attn_scalar;
  tensor y =
      cap > 0 ? attention_capped(q, k, v, window, 1 / sqrt(scalar), cap) : attend_window(q, k, v, window, scalar);
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

#include "gguf.h" /* of the tables below alone */

/* What llama.cpp calls it in a file of GGUF. */
const struct gguf_key gguf_keys[] = {
    {"general.architecture", .text = "gemma2"},
    {"attn_logit_softcapping", "attn_logit_softcapping"},
    {"final_logit_softcapping", "final_logit_softcapping"},
    {.value = "attn_logit_softcapping", .is = "50", .when = "attn_logit_softcapping=0"},
    {.value = "final_logit_softcapping", .is = "30", .when = "final_logit_softcapping=0"},
    GGUF_GEMMA_SCALE("46"),
    GGUF_GEMMA_WINDOW,
    GGUF_GEMMA_KEYS,
};

const struct gguf_tensor gguf_tensors[] = {
    GGUF_GEMMA_TENSORS,
    GGUF_GEMMA_NORMS,
};
