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

#endif
