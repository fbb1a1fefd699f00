/* Gemma (Gemma Team, arXiv:2403.08295): the tensor names and the arithmetic of transformers' GemmaForCausalLM, so that
 * its checkpoints load from their model.safetensors. Norms multiply by 1 + weight, embeddings by sqrt(C), the gate is
 * gelu, and the last layer is the token table again.
 *
 * B batch, T tokens of a sequence, C hidden_size, H heads of queries, K heads of keys and values, D head_dim. */
#include <accel/model.h>

#include "rope.h"

struct config {
  int num_hidden_layers, num_attention_heads, num_key_value_heads, head_dim;
  int hidden_size, intermediate_size, vocab_size;
  double rms_norm_eps, initializer_range;
  struct rope_config rope;
};

const struct config defaults = {
    .rms_norm_eps = 1e-6,
    .initializer_range = 0.02,
    .rope = ROPE_DEFAULTS(10000),
};

#include "gemma.h"

const char *const architectures[] = {"GemmaForCausalLM"};

/* What a published config.json says otherwise than by a field's own name. */
const struct published published[] = {
    {"model_type", .is = "gemma"},
    {"head_dim", "head_dim", .absent = "hidden_size/num_attention_heads"},
    GEMMA_PUBLISHED,
    ROPE_PUBLISHED("10000"),
};

static tensor attend(scope s, tensor x, struct rope rope, struct config c) {
  tensor q = linear_no_bias(at(s, "q_proj"), x, c.num_attention_heads * c.head_dim);
  tensor k = linear_no_bias(at(s, "k_proj"), x, c.num_key_value_heads * c.head_dim);
  tensor v = linear_no_bias(at(s, "v_proj"), x, c.num_key_value_heads * c.head_dim);
  q = rotary(heads(q, c.num_attention_heads), rope.cos, rope.sin);
  k = rotary(heads(k, c.num_key_value_heads), rope.cos, rope.sin);
  tensor y = attention(q, k, heads(v, c.num_key_value_heads), CAUSAL);
  return linear_no_bias(at(s, "o_proj"), merge(y), c.hidden_size);
}

static tensor block(scope s, tensor x, struct rope rope, struct config c) {
  tensor a = norm(at(s, "input_layernorm"), x, c);
  x = add(x, attend(at(s, "self_attn"), a, rope, c));
  tensor m = norm(at(s, "post_attention_layernorm"), x, c);
  return add(x, mlp(at(s, "mlp"), m, c));
}

/* tokens [B][T] to logits [B][T][vocab_size]. */
tensor predict(scope s, struct config c, tensor tokens) {
  s = init_normal(s, c.initializer_range);
  struct rope rope = rope_angles(c.rope, dim(tokens, 1), c.head_dim);
  tensor x = embedding(at(s, "model.embed_tokens"), tokens, c.vocab_size, c.hidden_size);
  x = scale(x, sqrt((double)c.hidden_size));
  for (int i = 0; i < c.num_hidden_layers; i++) x = block(nth(s, "model.layers", i), x, rope, c);
  x = norm(at(s, "model.norm"), x, c);
  return matmul_transposed(x, parameter(at(s, "model.embed_tokens"), "weight", c.vocab_size, c.hidden_size));
}

tensor model(scope s, struct config c, tensor tokens, tensor targets) {
  return cross_entropy(predict(s, c, tokens), targets);
}

#include "gguf.h" /* of the tables below alone */

/* What llama.cpp calls it in a file of GGUF. */
const struct gguf_key gguf_keys[] = {
    {"general.architecture", .text = "gemma"},
    GGUF_GEMMA_KEYS,
};

const struct gguf_tensor gguf_tensors[] = {
    GGUF_GEMMA_TENSORS,
    {"model.layers.#.post_attention_layernorm.weight", "blk.#.ffn_norm.weight", .change = "plus 1"},
};
