/* Gemma 3 (Gemma Team, arXiv:2503.19786), its text models: the tensor names and the arithmetic of transformers'
 * Gemma3ForCausalLM, so that its checkpoints load from their model.safetensors. Of `sliding_window_pattern` layers all
 * but the last see the last `sliding_window` keys alone, with a rotary embedding of their own; queries and keys are
 * normalized in each head, and each part has a norm before and after it.
 *
 * B batch, T tokens of a sequence, C hidden_size, H heads of queries, K heads of keys and values, D head_dim. */
#include <accel/model.h>
#include <math.h>

#include "rope.h"

enum layer_type { LAYER_BY_PATTERN, LAYER_SLIDING_ATTENTION, LAYER_FULL_ATTENTION };

struct config {
  int num_hidden_layers, num_attention_heads, num_key_value_heads, head_dim;
  int hidden_size, intermediate_size, vocab_size, sliding_window, sliding_window_pattern;
  int query_pre_attn_scalar;
  double rms_norm_eps, initializer_range;
  enum layer_type layer_types[128];
  struct rope_config rope, local_rope; /* of layers that see all keys, and of those that do not */
};

const struct config defaults = {
    .sliding_window = 4096,
    .sliding_window_pattern = 6,
    .rms_norm_eps = 1e-6,
    .initializer_range = 0.02,
    .query_pre_attn_scalar = 256,
    .layer_types = {LAYER_BY_PATTERN},
    .rope = ROPE_DEFAULTS(1000000),
    .local_rope = ROPE_DEFAULTS(10000),
};

#include "gemma.h"

const char *const architectures[] = {"Gemma3ForCausalLM"};

/* What a published config.json says otherwise than by a field's own name. */
const struct published published[] = {
    {"model_type", .is = "gemma3_text"},
    {"head_dim", "head_dim", .absent = "256"},
    {"sliding_window_pattern _sliding_window_pattern", "sliding_window_pattern", .absent = "6"},
    {"attn_logit_softcapping", .is = "null"},
    {"final_logit_softcapping", .is = "null"},
    {"rope_parameters.full_attention.rope_theta rope_theta", "rope.theta", .absent = "1000000"},
    {"rope_parameters.full_attention.rope_type rope_scaling.rope_type rope_scaling", "rope.kind", .absent = "default"},
    {"rope_parameters.full_attention.factor rope_scaling.factor", "rope.factor"},
    {"rope_parameters.sliding_attention.rope_theta rope_local_base_freq", "local_rope.theta", .absent = "10000"},
    {"rope_parameters.sliding_attention.rope_type", "local_rope.kind", .absent = "default"},
    {"rope_parameters.sliding_attention.factor", "local_rope.factor"},
    {"max_position_embeddings"},
    {"cache_implementation"},
    GEMMA_PUBLISHED,
};

static tensor attend(scope s, tensor x, struct rope rope, int window, struct config c) {
  tensor q = linear_no_bias(at(s, "q_proj"), x, c.num_attention_heads * c.head_dim);
  tensor k = linear_no_bias(at(s, "k_proj"), x, c.num_key_value_heads * c.head_dim);
  tensor v = linear_no_bias(at(s, "v_proj"), x, c.num_key_value_heads * c.head_dim);
  q = rotary(norm(at(s, "q_norm"), heads(q, c.num_attention_heads), c), rope.cos, rope.sin);
  k = rotary(norm(at(s, "k_norm"), heads(k, c.num_key_value_heads), c), rope.cos, rope.sin);
  tensor y = attend_window(q, k, heads(v, c.num_key_value_heads), window, c.query_pre_attn_scalar);
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
  return (layer + 1) % c.sliding_window_pattern != 0;
}

/* tokens [B][T] to logits [B][T][vocab_size]. */
tensor predict(scope s, struct config c, tensor tokens) {
  s = init_normal(s, c.initializer_range);
  int positions = dim(tokens, 1);
  struct rope rope = rope_angles(c.rope, positions, c.head_dim);
  struct rope local = rope_angles(c.local_rope, positions, c.head_dim);
  tensor x = embedding(at(s, "model.embed_tokens"), tokens, c.vocab_size, c.hidden_size);
  x = scale(x, sqrt((double)c.hidden_size));
  for (int i = 0; i < c.num_hidden_layers; i++) {
    bool slide = slides(i, c);
    x = block(nth(s, "model.layers", i), x, slide ? local : rope, slide ? c.sliding_window : positions, c);
  }
  x = norm(at(s, "model.norm"), x, c);
  return matmul_transposed(x, parameter(at(s, "model.embed_tokens"), "weight", c.vocab_size, c.hidden_size));
}

tensor model(scope s, struct config c, tensor tokens, tensor targets) {
  return cross_entropy(predict(s, c, tokens), targets);
}

#include "gguf.h" /* of the tables below alone */

/* What llama.cpp calls it in a file of GGUF. */
const struct gguf_key gguf_keys[] = {
    {"general.architecture", .text = "gemma3"},
    {"rope.freq_base_swa", "local_rope.theta", .type = "f32"},
    {.value = "local_rope.kind", .is = "ROPE_DEFAULT"},
    {.value = "local_rope.*"},
    {"attention.sliding_window_pattern", "sliding_window_pattern", .when = "layer_types.0=LAYER_BY_PATTERN"},
    GGUF_GEMMA_SCALE("62"),
    GGUF_GEMMA_WINDOW,
    GGUF_GEMMA_KEYS,
};

const struct gguf_tensor gguf_tensors[] = {
    GGUF_GEMMA_TENSORS,
    GGUF_GEMMA_NORMS,
    {"model.layers.#.self_attn.q_norm.weight", "blk.#.attn_q_norm.weight", .change = "plus 1"},
    {"model.layers.#.self_attn.k_norm.weight", "blk.#.attn_k_norm.weight", .change = "plus 1"},
};
