/* Phi-3 and Phi-4 (Abdin et al., arXiv:2404.14219; arXiv:2412.08905): the tensor names and the arithmetic of
 * transformers' Phi3ForCausalLM, so that its checkpoints load from their model.safetensors. One product makes queries,
 * keys and values, another the gate and what it multiplies. A query sees the last `sliding_window` keys; 0: all of
 * them. Frequencies by tables of their own ("longrope") are refused.
 *
 * B batch, T tokens of a sequence, C hidden_size, H heads of queries, K heads of keys and values, D = C / H. */
#include <accel/model.h>

#include "rope.h"

struct config {
  int num_hidden_layers, num_attention_heads, num_key_value_heads;
  int hidden_size, intermediate_size, vocab_size;
  int sliding_window;
  double rms_norm_eps, initializer_range, partial_rotary_factor;
  bool tie_word_embeddings;
  struct rope_config rope;
};

const struct config defaults = {
    .sliding_window = 0,
    .rms_norm_eps = 1e-5,
    .initializer_range = 0.02,
    .partial_rotary_factor = 1,
    .tie_word_embeddings = false,
    .rope = ROPE_DEFAULTS(10000),
};

const char *const architectures[] = {"Phi3ForCausalLM"};

/* What a published config.json says otherwise than by a field's own name. */
const struct published published[] = {
    {"model_type", .is = "phi3"},
    {"num_key_value_heads", "num_key_value_heads", .absent = "num_attention_heads"},
    {"sliding_window", "sliding_window", .absent = "0", .null = "0"},
    {"hidden_act", .is = "silu"},
    {"attention_bias", .is = "false"},
    {"rope_parameters.partial_rotary_factor partial_rotary_factor", "partial_rotary_factor", .absent = "1"},
    {"original_max_position_embeddings"}, /* of longrope */
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
  int width = c.hidden_size / c.num_attention_heads, kv = c.num_key_value_heads * width;
  tensor qkv = linear_no_bias(at(s, "qkv_proj"), x, c.hidden_size + 2 * kv);
  tensor q = rotary(heads(slice(qkv, 2, 0, c.hidden_size), c.num_attention_heads), rope.cos, rope.sin);
  tensor k = rotary(heads(slice(qkv, 2, c.hidden_size, kv), c.num_key_value_heads), rope.cos, rope.sin);
  tensor v = heads(slice(qkv, 2, c.hidden_size + kv, kv), c.num_key_value_heads);
  bool all = c.sliding_window == 0 || c.sliding_window >= dim(x, 1);
  tensor y = all ? attention(q, k, v, CAUSAL) : attention_window(q, k, v, c.sliding_window);
  return linear_no_bias(at(s, "o_proj"), merge(y), c.hidden_size);
}

/* SwiGLU (Shazeer, arXiv:2002.05202). */
static tensor mlp(scope s, tensor x, struct config c) {
  tensor both = linear_no_bias(at(s, "gate_up_proj"), x, 2 * c.intermediate_size);
  tensor h = mul(silu(split(both, 2, 2, 0)), split(both, 2, 2, 1));
  return linear_no_bias(at(s, "down_proj"), h, c.hidden_size);
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
  int width = c.hidden_size / c.num_attention_heads;
  struct rope rope = rope_angles(c.rope, dim(tokens, 1), (int)(width * c.partial_rotary_factor));
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
    {"general.architecture", .text = "phi3"},
    {"block_count", "num_hidden_layers"},
    {"context_length", "max_position_embeddings"},
    {"rope.scaling.original_context_length", "max_position_embeddings"},
    {"embedding_length", "hidden_size"},
    {"feed_forward_length", "intermediate_size"},
    {"attention.head_count", "num_attention_heads"},
    {"attention.head_count_kv", "num_key_value_heads"},
    {"attention.layer_norm_rms_epsilon", "rms_norm_eps"},
    {"attention.sliding_window", "sliding_window", .is = "0"}, /* llama.cpp attends to all keys */
    {"rope.dimension_count", "partial_rotary_factor*hidden_size/num_attention_heads", .type = "u32"},
    {.value = "initializer_range"},
    {.value = "tie_word_embeddings"},
    {.value = "vocab_size"},
    GGUF_ROPE("ROPE_DEFAULT"),
};

const struct gguf_tensor gguf_tensors[] = {
    GGUF_LLAMA_ENDS,
    {"model.layers.#.input_layernorm.weight", "blk.#.attn_norm.weight"},
    {"model.layers.#.self_attn.qkv_proj.weight", "blk.#.attn_qkv.weight"},
    {"model.layers.#.self_attn.o_proj.weight", "blk.#.attn_output.weight"},
    {"model.layers.#.post_attention_layernorm.weight", "blk.#.ffn_norm.weight"},
    {"model.layers.#.mlp.gate_up_proj.weight", "blk.#.ffn_up.weight"},
    {"model.layers.#.mlp.down_proj.weight", "blk.#.ffn_down.weight"},
};
