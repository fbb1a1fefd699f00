/* Phi-1, Phi-1.5 and Phi-2 (Gunasekar et al., arXiv:2306.11644; Li et al., arXiv:2309.05463): the tensor names and the
 * arithmetic of transformers' PhiForCausalLM, so that its checkpoints load from their model.safetensors. Attention and
 * the feed-forward net run in parallel after one norm, and the rotary embedding turns a part of a head's columns.
 *
 * B batch, T tokens of a sequence, C hidden_size, H heads of queries, K heads of keys and values, D = C / H. */
#include <accel/model.h>

#include "rope.h"

struct config {
  int num_hidden_layers, num_attention_heads, num_key_value_heads;
  int hidden_size, intermediate_size, vocab_size;
  double partial_rotary_factor, layer_norm_eps, initializer_range, resid_pdrop, embd_pdrop;
  bool qk_layernorm;
  struct rope_config rope;
};

const struct config defaults = {
    .partial_rotary_factor = 0.5,
    .layer_norm_eps = 1e-5,
    .initializer_range = 0.02,
    .resid_pdrop = 0,
    .embd_pdrop = 0,
    .qk_layernorm = false,
    .rope = ROPE_DEFAULTS(10000),
};

const char *const architectures[] = {"PhiForCausalLM"};

/* What a published config.json says otherwise than by a field's own name. */
const struct published published[] = {
    {"model_type", .is = "phi"},
    {"num_key_value_heads", "num_key_value_heads", .absent = "num_attention_heads"},
    {"rope_parameters.partial_rotary_factor partial_rotary_factor", "partial_rotary_factor", .absent = "0.5"},
    {"hidden_act", .is = "gelu_new"},
    {"tie_word_embeddings", .is = "false"},
    ROPE_PUBLISHED("10000"),
};

/* [B][T][n D] as [B][n][T][D]. */
static tensor heads(tensor x, int n) {
  return transpose(reshape(x, dim(x, 0), dim(x, 1), n, dim(x, 2) / n), 1, 2);
}

/* Queries or keys, [B][T][n D] as [B][n][T][D]. */
static tensor turned(scope norm, tensor x, int n, struct rope rope, struct config c) {
  x = heads(x, n);
  if (c.qk_layernorm) x = layer_norm_eps(norm, x, c.layer_norm_eps);
  return rotary(x, rope.cos, rope.sin);
}

static tensor attend(scope s, tensor x, struct rope rope, struct config c) {
  int width = c.hidden_size / c.num_attention_heads, kv = c.num_key_value_heads * width;
  tensor q = turned(at(s, "q_layernorm"), linear(at(s, "q_proj"), x, c.hidden_size), c.num_attention_heads, rope, c);
  tensor k = turned(at(s, "k_layernorm"), linear(at(s, "k_proj"), x, kv), c.num_key_value_heads, rope, c);
  tensor v = heads(linear(at(s, "v_proj"), x, kv), c.num_key_value_heads);
  tensor y = transpose(attention(q, k, v, CAUSAL), 1, 2);
  return linear(at(s, "dense"), reshape(y, dim(x, 0), dim(x, 1), c.hidden_size), c.hidden_size);
}

static tensor mlp(scope s, tensor x, struct config c) {
  return linear(at(s, "fc2"), gelu_tanh(linear(at(s, "fc1"), x, c.intermediate_size)), c.hidden_size);
}

static tensor block(scope s, tensor x, struct rope rope, struct config c) {
  tensor h = layer_norm_eps(at(s, "input_layernorm"), x, c.layer_norm_eps);
  tensor a = dropout(attend(at(s, "self_attn"), h, rope, c), c.resid_pdrop);
  return add(add(a, dropout(mlp(at(s, "mlp"), h, c), c.resid_pdrop)), x);
}

/* tokens [B][T] to logits [B][T][vocab_size]. */
tensor predict(scope s, struct config c, tensor tokens) {
  s = init_normal(s, c.initializer_range);
  int width = c.hidden_size / c.num_attention_heads;
  struct rope rope = rope_angles(c.rope, dim(tokens, 1), (int)(width * c.partial_rotary_factor));
  tensor x = dropout(embedding(at(s, "model.embed_tokens"), tokens, c.vocab_size, c.hidden_size), c.embd_pdrop);
  for (int i = 0; i < c.num_hidden_layers; i++) x = block(nth(s, "model.layers", i), x, rope, c);
  x = layer_norm_eps(at(s, "model.final_layernorm"), x, c.layer_norm_eps);
  return linear(at(s, "lm_head"), x, c.vocab_size);
}

tensor model(scope s, struct config c, tensor tokens, tensor targets) {
  return cross_entropy(predict(s, c, tokens), targets);
}

#include "gguf.h" /* of the tables below alone */

/* What llama.cpp calls it in a file of GGUF. */
const struct gguf_key gguf_keys[] = {
    {"general.architecture", .text = "phi2"},
    {"block_count", "num_hidden_layers"},
    {"context_length", "max_position_embeddings"},
    {"embedding_length", "hidden_size"},
    {"feed_forward_length", "intermediate_size"},
    {"attention.head_count", "num_attention_heads"},
    {"attention.head_count_kv", "num_key_value_heads", .is = "num_attention_heads"},
    {"attention.layer_norm_epsilon", "layer_norm_eps"},
    {"rope.dimension_count", "partial_rotary_factor*hidden_size/num_attention_heads", .type = "u32"},
    {.value = "qk_layernorm", .is = "false"},
    {.value = "initializer_range"},
    {.value = "*_pdrop"},
    {.value = "vocab_size"},
    GGUF_ROPE(GGUF_KINDS),
};

const struct gguf_tensor gguf_tensors[] = {
    {"model.embed_tokens.weight", "token_embd.weight"},
    {"lm_head.weight", "output.weight"},
    {"lm_head.bias", "output.bias"},
    {"model.final_layernorm.weight", "output_norm.weight"},
    {"model.final_layernorm.bias", "output_norm.bias"},
    {"model.layers.#.input_layernorm.weight", "blk.#.attn_norm.weight"},
    {"model.layers.#.input_layernorm.bias", "blk.#.attn_norm.bias"},
    {"model.layers.#.self_attn.q_proj.weight", "blk.#.attn_q.weight"},
    {"model.layers.#.self_attn.q_proj.bias", "blk.#.attn_q.bias"},
    {"model.layers.#.self_attn.k_proj.weight", "blk.#.attn_k.weight"},
    {"model.layers.#.self_attn.k_proj.bias", "blk.#.attn_k.bias"},
    {"model.layers.#.self_attn.v_proj.weight", "blk.#.attn_v.weight"},
    {"model.layers.#.self_attn.v_proj.bias", "blk.#.attn_v.bias"},
    {"model.layers.#.self_attn.dense.weight", "blk.#.attn_output.weight"},
    {"model.layers.#.self_attn.dense.bias", "blk.#.attn_output.bias"},
    {"model.layers.#.mlp.fc1.weight", "blk.#.ffn_up.weight"},
    {"model.layers.#.mlp.fc1.bias", "blk.#.ffn_up.bias"},
    {"model.layers.#.mlp.fc2.weight", "blk.#.ffn_down.weight"},
    {"model.layers.#.mlp.fc2.bias", "blk.#.ffn_down.bias"},
};
