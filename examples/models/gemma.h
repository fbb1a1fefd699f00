/* What the generations of Gemma have in common: a norm that multiplies by 1 + weight, heads, and GeGLU. Whoever
 * includes it has declared struct config, with the fields that are used here.
 *
 * B batch, T tokens of a sequence, C hidden_size, D head_dim. */
#ifndef GEMMA_H
#define GEMMA_H

#include <accel/model.h>
#include <math.h>

/* What a published config.json says of all of them. */
#define GEMMA_PUBLISHED                                                                                                \
  {"num_key_value_heads", "num_key_value_heads", .absent = "num_attention_heads"},                                     \
      {"hidden_act", .is = "gelu_pytorch_tanh gelu"},                                                                  \
      {"hidden_activation", .is = "gelu_pytorch_tanh", .null = "gelu_pytorch_tanh"},                                   \
      {"attention_bias", .is = "false"}, {"use_bidirectional_attention", .is = "null false"},                          \
      {"tie_word_embeddings", .is = "true"},                                                                           \
      {"rope_parameters.partial_rotary_factor partial_rotary_factor", .is = "1"}

/* x / sqrt(mean of squares + eps) * (1 + weight), over the last axis. */
static inline tensor norm(scope s, tensor x, struct config c) {
  int last = rank(x) - 1;
  tensor squares = mean(square(x), last);
  squares =
      last == 2 ? reshape(squares, dim(x, 0), dim(x, 1), 1) : reshape(squares, dim(x, 0), dim(x, 1), dim(x, 2), 1);
  tensor weight = parameter(init_zeros(s), "weight", dim(x, last));
  return mul(mul(x, rsqrt_of(shift(squares, c.rms_norm_eps))), shift(weight, 1));
}

/* [B][T][n D] as [B][n][T][D]. */
static inline tensor heads(tensor x, int n) {
  return transpose(reshape(x, dim(x, 0), dim(x, 1), n, dim(x, 2) / n), 1, 2);
}

/* [B][H][T][D] as [B][T][H D]. */
static inline tensor merge(tensor x) {
  x = transpose(x, 1, 2);
  return reshape(x, dim(x, 0), dim(x, 1), dim(x, 2) * dim(x, 3));
}

/* Causal attention over the last `window` keys, scaled by 1 / sqrt(scalar). */
static inline tensor attend_window(tensor q, tensor k, tensor v, int window, double scalar) {
  if (window >= dim(q, 2)) return attention_scaled(q, k, v, CAUSAL, 1 / sqrt(scalar));
  return attention_window(scale(q, sqrt(dim(q, 3) / scalar)), k, v, window);
}

/* GeGLU (Shazeer, arXiv:2002.05202). */
static inline tensor mlp(scope s, tensor x, struct config c) {
  tensor gate = gelu_tanh(linear_no_bias(at(s, "gate_proj"), x, c.intermediate_size));
  tensor up = linear_no_bias(at(s, "up_proj"), x, c.intermediate_size);
  return linear_no_bias(at(s, "down_proj"), mul(gate, up), c.hidden_size);
}

#endif
