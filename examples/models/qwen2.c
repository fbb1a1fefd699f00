/* Qwen2 and Qwen2.5 (Qwen Team, arXiv:2407.10671; arXiv:2412.15115): the tensor names and the arithmetic of
 * transformers' Qwen2ForCausalLM, so that its checkpoints load from their model.safetensors. Llama, with biases of
 * queries, keys and values.
 *
 * B batch, T tokens of a sequence, C hidden_size, H heads of queries, K heads of keys and values, D = C / H. */
#include <accel/model.h>

#include "rope.h"

struct config {
  int num_hidden_layers, num_attention_heads, num_key_value_heads;
  int hidden_size, intermediate_size, vocab_size;
  double rms_norm_eps, initializer_range;
  bool tie_word_embeddings;
  struct rope_config rope;
};

const struct config defaults = {
    .rms_norm_eps = 1e-6,
    .initializer_range = 0.02,
    .tie_word_embeddings = false,
    .rope = ROPE_DEFAULTS(1000000),
};

const char *const architectures[] = {"Qwen2ForCausalLM"};

/* What a published config.json says otherwise than by a field's own name. */
const struct published published[] = {
    {"model_type", .is = "qwen2"},
    {"num_key_value_heads", "num_key_value_heads", .absent = "num_attention_heads"},
    {"hidden_act", .is = "silu"},
    {"use_sliding_window", .is = "false"},
    {"sliding_window"}, /* where it is used */
    {"max_window_layers"},
    {"layer_types.*", .is = "full_attention"},
    {"rope_parameters.partial_rotary_factor partial_rotary_factor", .is = "1"},
    ROPE_PUBLISHED("10000"),
};

/* [B][T][n D] as [B][n][T][D]. */
static tensor heads(tensor x, int n) {
  return transpose(reshape(x, dim(x, 0), dim(x, 1), n, dim(x, 2) / n), 1, 2);
}

/* [B][H][T][D] as [B][T][H D]. */
static tensor merge(tensor x) {
  x = transpose(x, 1, 2);
  return reshape(x, dim(x, 0), dim(x, 1), dim(x, 2) * dim(x, 3));
}

static tensor attend(scope s, tensor x, struct rope rope, struct config c) {
  int width = c.hidden_size / c.num_attention_heads;
  tensor q = linear(at(s, "q_proj"), x, c.hidden_size);
  tensor k = linear(at(s, "k_proj"), x, c.num_key_value_heads * width);
  tensor v = linear(at(s, "v_proj"), x, c.num_key_value_heads * width);
  q = rotary(heads(q, c.num_attention_heads), rope.cos, rope.sin);
  k = rotary(heads(k, c.num_key_value_heads), rope.cos, rope.sin);
  tensor y = attention(q, k, heads(v, c.num_key_value_heads), CAUSAL);
  return linear_no_bias(at(s, "o_proj"), merge(y), c.hidden_size);
}

/* SwiGLU (Shazeer, arXiv:2002.05202). */
static tensor mlp(scope s, tensor x, struct config c) {
  tensor gate = silu(linear_no_bias(at(s, "gate_proj"), x, c.intermediate_size));
  tensor up = linear_no_bias(at(s, "up_proj"), x, c.intermediate_size);
  return linear_no_bias(at(s, "down_proj"), mul(gate, up), c.hidden_size);
}

static tensor block(scope s, tensor x, struct rope rope, struct config c) {
  tensor a = rms_norm_eps(at(s, "input_layernorm"), x, c.rms_norm_eps);
  x = add(x, attend(at(s, "self_attn"), a, rope, c));
  tensor m = rms_norm_eps(at(s, "post_attention_layernorm"), x, c.rms_norm_eps);
  return add(x, mlp(at(s, "mlp"), m, c));
}

/* tokens [B][T] to logits [B][T][vocab_size]. */
tensor predict(scope s, struct config c, tensor tokens) {
  s = init_normal(s, c.initializer_range);
  struct rope rope = rope_angles(c.rope, dim(tokens, 1), c.hidden_size / c.num_attention_heads);
  tensor x = embedding(at(s, "model.embed_tokens"), tokens, c.vocab_size, c.hidden_size);
  for (int i = 0; i < c.num_hidden_layers; i++) x = block(nth(s, "model.layers", i), x, rope, c);
  x = rms_norm_eps(at(s, "model.norm"), x, c.rms_norm_eps);
  scope head = c.tie_word_embeddings ? at(s, "model.embed_tokens") : at(s, "lm_head");
  return matmul_transposed(x, parameter(head, "weight", c.vocab_size, c.hidden_size));
}

tensor model(scope s, struct config c, tensor tokens, tensor targets) {
  return cross_entropy(predict(s, c, tokens), targets);
}

#include "gguf.h" /* of the tables below alone */

/* What llama.cpp calls it in a file of GGUF. */
const struct gguf_key gguf_keys[] = {
    {"general.architecture", .text = "qwen2"},
    GGUF_LLAMA_KEYS("hidden_size/num_attention_heads", GGUF_KINDS),
};

const struct gguf_tensor gguf_tensors[] = {
    GGUF_LLAMA_ENDS,
    GGUF_LLAMA_ATTENTION("", ""),
    GGUF_LLAMA_MLP,
    {"model.layers.#.self_attn.q_proj.bias", "blk.#.attn_q.bias"},
    {"model.layers.#.self_attn.k_proj.bias", "blk.#.attn_k.bias"},
    {"model.layers.#.self_attn.v_proj.bias", "blk.#.attn_v.bias"},
};
