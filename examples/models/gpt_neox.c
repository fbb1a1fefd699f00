/* GPT-NeoX and Pythia (Black et al., arXiv:2204.06745): the tensor names and the arithmetic of transformers'
 * GPTNeoXForCausalLM, so that its checkpoints load from their model.safetensors. Attention and the feed-forward net
 * run in parallel, and the rotary embedding turns the first quarter of a head's columns.
 *
 * B batch, T tokens of a sequence, C hidden_size, H heads, D = C / H. */
#include <accel/model.h>

#include "rope.h"

struct config {
  int num_hidden_layers, num_attention_heads, hidden_size, intermediate_size, vocab_size;
  double rotary_pct, layer_norm_eps, initializer_range;
  bool use_parallel_residual, tie_word_embeddings;
  struct rope_config rope;
};

const struct config defaults = {
    .rotary_pct = 0.25,
    .layer_norm_eps = 1e-5,
    .initializer_range = 0.02,
    .use_parallel_residual = true,
    .tie_word_embeddings = false,
    .rope = ROPE_DEFAULTS(10000),
};

const char *const architectures[] = {"GPTNeoXForCausalLM"};

/* What a published config.json says otherwise than by a field's own name. */
const struct published published[] = {
    {"model_type", .is = "gpt_neox"},
    {"rope_parameters.partial_rotary_factor partial_rotary_factor rotary_pct", "rotary_pct", .absent = "0.25"},
    {"hidden_act", .is = "gelu"},
    {"attention_bias", .is = "true"},
    {"is_decoder"},
    ROPE_PUBLISHED("10000"),
};

/* Part `which` of qkv [B][T][H][3 D] as [B][H][T][D]. */
static tensor part(tensor qkv, int which) {
  return transpose(split(qkv, 3, 3, which), 1, 2);
}

static tensor attend(scope s, tensor x, struct rope rope, struct config c) {
  tensor qkv = linear(at(s, "query_key_value"), x, 3 * c.hidden_size);
  qkv = reshape(qkv, dim(x, 0), dim(x, 1), c.num_attention_heads, 3 * c.hidden_size / c.num_attention_heads);
  tensor q = rotary(part(qkv, 0), rope.cos, rope.sin), k = rotary(part(qkv, 1), rope.cos, rope.sin);
  tensor y = transpose(attention(q, k, part(qkv, 2), CAUSAL), 1, 2);
  return linear(at(s, "dense"), reshape(y, dim(x, 0), dim(x, 1), c.hidden_size), c.hidden_size);
}

static tensor mlp(scope s, tensor x, struct config c) {
  tensor h = gelu(linear(at(s, "dense_h_to_4h"), x, c.intermediate_size));
  return linear(at(s, "dense_4h_to_h"), h, c.hidden_size);
}

static tensor block(scope s, tensor x, struct rope rope, struct config c) {
  tensor a = attend(at(s, "attention"), layer_norm_eps(at(s, "input_layernorm"), x, c.layer_norm_eps), rope, c);
  tensor after = add(x, a), from = c.use_parallel_residual ? x : after;
  return add(after, mlp(at(s, "mlp"), layer_norm_eps(at(s, "post_attention_layernorm"), from, c.layer_norm_eps), c));
}

/* tokens [B][T] to logits [B][T][vocab_size]. */
tensor predict(scope s, struct config c, tensor tokens) {
  s = init_normal(s, c.initializer_range);
  int width = c.hidden_size / c.num_attention_heads;
  struct rope rope = rope_angles(c.rope, dim(tokens, 1), (int)(width * c.rotary_pct));
  tensor x = embedding(at(s, "gpt_neox.embed_in"), tokens, c.vocab_size, c.hidden_size);
  for (int i = 0; i < c.num_hidden_layers; i++) x = block(nth(s, "gpt_neox.layers", i), x, rope, c);
  x = layer_norm_eps(at(s, "gpt_neox.final_layer_norm"), x, c.layer_norm_eps);
  scope head = c.tie_word_embeddings ? at(s, "gpt_neox.embed_in") : at(s, "embed_out");
  return matmul_transposed(x, parameter(head, "weight", c.vocab_size, c.hidden_size));
}

tensor model(scope s, struct config c, tensor tokens, tensor targets) {
  return cross_entropy(predict(s, c, tokens), targets);
}

#include "gguf.h" /* of the tables below alone */

/* What llama.cpp calls it in a file of GGUF. */
const struct gguf_key gguf_keys[] = {
    {"general.architecture", .text = "gptneox"},
    {"block_count", "num_hidden_layers"},
    {"context_length", "max_position_embeddings"},
    {"embedding_length", "hidden_size"},
    {"feed_forward_length", "intermediate_size"},
    {"attention.head_count", "num_attention_heads"},
    {"attention.layer_norm_epsilon", "layer_norm_eps"},
    {"rope.dimension_count", "rotary_pct*hidden_size/num_attention_heads", .type = "u32"},
    {"use_parallel_residual", "use_parallel_residual"},
    {.value = "tie_word_embeddings", .is = "false"},
    {.value = "initializer_range"},
    {.value = "vocab_size"},
    GGUF_ROPE(GGUF_KINDS),
};

const struct gguf_tensor gguf_tensors[] = {
    {"gpt_neox.embed_in.weight", "token_embd.weight"},
    {"embed_out.weight", "output.weight"},
    {"gpt_neox.final_layer_norm.weight", "output_norm.weight"},
    {"gpt_neox.final_layer_norm.bias", "output_norm.bias"},
    {"gpt_neox.layers.#.input_layernorm.weight", "blk.#.attn_norm.weight"},
    {"gpt_neox.layers.#.input_layernorm.bias", "blk.#.attn_norm.bias"},
    {"gpt_neox.layers.#.attention.query_key_value.weight", "blk.#.attn_qkv.weight",
     .change = "swap num_attention_heads 3"},
    {"gpt_neox.layers.#.attention.query_key_value.bias", "blk.#.attn_qkv.bias", .change = "swap num_attention_heads 3"},
    {"gpt_neox.layers.#.attention.dense.weight", "blk.#.attn_output.weight"},
    {"gpt_neox.layers.#.attention.dense.bias", "blk.#.attn_output.bias"},
    {"gpt_neox.layers.#.post_attention_layernorm.weight", "blk.#.ffn_norm.weight"},
    {"gpt_neox.layers.#.post_attention_layernorm.bias", "blk.#.ffn_norm.bias"},
    {"gpt_neox.layers.#.mlp.dense_h_to_4h.weight", "blk.#.ffn_up.weight"},
    {"gpt_neox.layers.#.mlp.dense_h_to_4h.bias", "blk.#.ffn_up.bias"},
    {"gpt_neox.layers.#.mlp.dense_4h_to_h.weight", "blk.#.ffn_down.weight"},
    {"gpt_neox.layers.#.mlp.dense_4h_to_h.bias", "blk.#.ffn_down.bias"},
};
