/* Mistral 7B (Jiang et al., arXiv:2310.06825): the tensor names and the arithmetic of transformers' MistralForCausalLM,
 * so that its checkpoints load from their model.safetensors. A query sees the last `sliding_window` keys; 0: all of
 * them.
 *
 * B batch, T tokens of a sequence, C hidden_size, H heads of queries, K heads of keys and values, D head_dim. */
#include <accel/model.h>

#include "rope.h"

struct config {
  int num_hidden_layers, num_attention_heads, num_key_value_heads, head_dim;
  int hidden_size, intermediate_size, vocab_size;
  int sliding_window;
  double rms_norm_eps, initializer_range;
  bool tie_word_embeddings;
  struct rope_config rope;
};

const struct config defaults = {
    .sliding_window = 4096,
    .rms_norm_eps = 1e-6,
    .initializer_range = 0.02,
    .tie_word_embeddings = false,
    .rope = ROPE_DEFAULTS(10000),
};

const char *const architectures[] = {"MistralForCausalLM"};

/* What a published config.json says otherwise than by a field's own name. */
const struct published published[] = {
    {"model_type", .is = "mistral"},
    {"head_dim", "head_dim", .absent = "hidden_size/num_attention_heads"},
    {"num_key_value_heads", "num_key_value_heads", .absent = "num_attention_heads"},
    {"sliding_window", "sliding_window", .absent = "4096", .null = "0"},
    {"hidden_act", .is = "silu"},
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
  tensor q = linear_no_bias(at(s, "q_proj"), x, c.num_attention_heads * c.head_dim);
  tensor k = linear_no_bias(at(s, "k_proj"), x, c.num_key_value_heads * c.head_dim);
  tensor v = linear_no_bias(at(s, "v_proj"), x, c.num_key_value_heads * c.head_dim);
  q = rotary(heads(q, c.num_attention_heads), rope.cos, rope.sin);
  k = rotary(heads(k, c.num_key_value_heads), rope.cos, rope.sin);
  v = heads(v, c.num_key_value_heads);
  bool all = c.sliding_window == 0 || c.sliding_window >= dim(x, 1);
  tensor y = all ? attention(q, k, v, CAUSAL) : attention_window(q, k, v, c.sliding_window);
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
  struct rope rope = rope_angles(c.rope, dim(tokens, 1), c.head_dim);
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
    {"general.architecture", .text = "llama"},
    {.value = "sliding_window", .is = "0"},
    GGUF_LLAMA_KEYS("head_dim", GGUF_KINDS),
};

const struct gguf_tensor gguf_tensors[] = {
    GGUF_LLAMA_ENDS,
    GGUF_LLAMA_ATTENTION(GGUF_PAIRS("num_attention_heads"), GGUF_PAIRS("num_key_value_heads")),
    GGUF_LLAMA_MLP,
};
