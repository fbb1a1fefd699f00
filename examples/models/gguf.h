/* Rows of GGUF that families share: what llama.cpp calls the metadata and the tensors of a decoder with the names of
 * Llama. */
#ifndef GGUF_H
#define GGUF_H

#include <accel/model.h>

/* The angles; a file of GGUF has the factors of other kinds in other forms. */
#define GGUF_KINDS "ROPE_DEFAULT ROPE_LINEAR"
#define GGUF_ROPE(kinds_)                                                                                              \
  {"rope.freq_base", "rope.theta", .type = "f32"}, {.value = "rope.kind", .is = (kinds_)},                             \
      {"rope.scaling.type", .text = "linear", .when = "rope.kind=ROPE_LINEAR"},                                        \
      {"rope.scaling.factor", "rope.factor", .type = "f32", .when = "rope.kind=ROPE_LINEAR"}, {.value = "rope.*"}

/* The angles of YaRN, where llama.cpp computes what DeepSeek does: the size of cos and sin is 1, since the two scales
 * are the same one, and the products are scaled by its square. */
#define GGUF_YARN                                                                                                      \
  {"rope.scaling.type", .text = "yarn", .when = "rope.kind=ROPE_YARN"},                                                \
      {"rope.scaling.factor", "rope.factor", .type = "f32", .when = "rope.kind=ROPE_YARN"},                            \
      {"rope.scaling.original_context_length", "rope.original_length", .when = "rope.kind=ROPE_YARN"},                 \
      {"rope.scaling.yarn_beta_fast", "rope.beta_fast", .type = "f32", .when = "rope.kind=ROPE_YARN"},                 \
      {"rope.scaling.yarn_beta_slow", "rope.beta_slow", .type = "f32", .when = "rope.kind=ROPE_YARN"},                 \
      {"rope.scaling.yarn_log_multiplier", "0.1*rope.mscale_all_dim", .type = "f32", .when = "rope.kind=ROPE_YARN"},   \
      {.value = "rope.mscale", .is = "rope.mscale_all_dim", .when = "rope.kind=ROPE_YARN"},                            \
      {.value = "rope.mscale_all_dim", .is = "1", .when = "rope.kind=ROPE_YARN rope.mscale_all_dim=0"},                \
      {.value = "rope.factor", .is = "1", .when = "rope.kind=ROPE_YARN rope.factor<1"}

/* What all of them have; `head_dim_` is the width of a head, a field or a product. */
#define GGUF_LLAMA_KEYS(head_dim_, kinds_)                                                                             \
  {"block_count", "num_hidden_layers"}, {"context_length", "max_position_embeddings"},                                 \
      {"embedding_length", "hidden_size"}, {"feed_forward_length", "intermediate_size"},                               \
      {"attention.head_count", "num_attention_heads"}, {"attention.head_count_kv", "num_key_value_heads"},             \
      {"attention.layer_norm_rms_epsilon", "rms_norm_eps"}, {"attention.key_length", head_dim_},                       \
      {"attention.value_length", head_dim_}, {"rope.dimension_count", head_dim_}, {"vocab_size", "vocab_size"},        \
      {.value = "initializer_range"}, {.value = "tie_word_embeddings"}, GGUF_ROPE(kinds_)

/* The tensors outside the layers. */
#define GGUF_LLAMA_ENDS                                                                                                \
  {"model.embed_tokens.weight", "token_embd.weight"}, {"model.norm.weight", "output_norm.weight"},                     \
      {"lm_head.weight", "output.weight", .when = "tie_word_embeddings=false"}

/* Those of a layer's attention, with `q_` and `k_` done to the queries' and keys' rows, and of its norms. */
#define GGUF_LLAMA_ATTENTION(q_, k_)                                                                                   \
  {"model.layers.#.input_layernorm.weight", "blk.#.attn_norm.weight"},                                                 \
      {"model.layers.#.self_attn.q_proj.weight", "blk.#.attn_q.weight", .change = (q_)},                               \
      {"model.layers.#.self_attn.k_proj.weight", "blk.#.attn_k.weight", .change = (k_)},                               \
      {"model.layers.#.self_attn.v_proj.weight", "blk.#.attn_v.weight"},                                               \
      {"model.layers.#.self_attn.o_proj.weight", "blk.#.attn_output.weight"},                                          \
      {"model.layers.#.post_attention_layernorm.weight", "blk.#.ffn_norm.weight"}

#define GGUF_LLAMA_MLP                                                                                                 \
  {"model.layers.#.mlp.gate_proj.weight", "blk.#.ffn_gate.weight"},                                                    \
      {"model.layers.#.mlp.up_proj.weight", "blk.#.ffn_up.weight"},                                                    \
      {"model.layers.#.mlp.down_proj.weight", "blk.#.ffn_down.weight"}

/* GGUF has the two numbers that a rotation turns next to each other. */
#define GGUF_PAIRS(heads_) "swap_each " heads_ " 2"

/* ---- Gemma: its norms multiply by 1 + weight, where those of GGUF multiply by the weight ---- */

#define GGUF_GEMMA_KEYS GGUF_LLAMA_KEYS("head_dim", GGUF_KINDS)

/* What llama.cpp divides the queries by: the root of a head's width, but for the largest model, of `layers_`. */
#define GGUF_GEMMA_SCALE(layers_)                                                                                      \
  {.value = "query_pre_attn_scalar", .is = "head_dim", .when = "num_hidden_layers!=" layers_}, {                       \
    .value = "query_pre_attn_scalar", .is = "hidden_size/num_attention_heads", .when = "num_hidden_layers=" layers_    \
  }

/* Which layers see a window alone. */
#define GGUF_GEMMA_WINDOW                                                                                              \
  {"attention.sliding_window", "sliding_window"},                                                                      \
      {"attention.sliding_window_pattern", "layer_types.*", .is = "LAYER_SLIDING_ATTENTION", .type = "bools",          \
       .when = "layer_types.0!=LAYER_BY_PATTERN"}

#define GGUF_GEMMA_TENSORS                                                                                             \
  {"model.embed_tokens.weight", "token_embd.weight"}, {"model.norm.weight", "output_norm.weight", .change = "plus 1"}, \
      {"model.layers.#.input_layernorm.weight", "blk.#.attn_norm.weight", .change = "plus 1"},                         \
      {"model.layers.#.self_attn.q_proj.weight", "blk.#.attn_q.weight"},                                               \
      {"model.layers.#.self_attn.k_proj.weight", "blk.#.attn_k.weight"},                                               \
      {"model.layers.#.self_attn.v_proj.weight", "blk.#.attn_v.weight"},                                               \
      {"model.layers.#.self_attn.o_proj.weight", "blk.#.attn_output.weight"}, GGUF_LLAMA_MLP

/* The norms around the parts of a layer of Gemma 2 and 3. */
#define GGUF_GEMMA_NORMS                                                                                               \
  {"model.layers.#.post_attention_layernorm.weight", "blk.#.post_attention_norm.weight", .change = "plus 1"},          \
      {"model.layers.#.pre_feedforward_layernorm.weight", "blk.#.ffn_norm.weight", .change = "plus 1"},                \
      {"model.layers.#.post_feedforward_layernorm.weight", "blk.#.post_ffw_norm.weight", .change = "plus 1"}

#endif
