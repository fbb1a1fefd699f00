/* Llama fine-tuned on pairs of completions, of which one is preferred: Direct Preference Optimization (Rafailov et al.,
 * arXiv:2305.18290, equation 7). The policy is trained, the reference is the model that it starts from; both are
 * LlamaForCausalLM of transformers (llama.c), below "policy" and "reference". Its inputs are the arrays that `accel-gen
 * data --task preference` writes.
 *
 * B batch, T tokens of a prompt and a completion, D head_dim. */
#include <accel/model.h>

#include "rope.h"

enum loss { SIGMOID, HINGE, IPO };

struct config {
  int num_hidden_layers, num_attention_heads, num_key_value_heads, head_dim;
  int hidden_size, intermediate_size, vocab_size;
  double rms_norm_eps, initializer_range;
  bool tie_word_embeddings;
  struct rope_config rope;
  enum loss loss;
  double beta, label_smoothing; /* of SIGMOID: the fraction of labels that are taken to be wrong */
};

const struct config defaults = {
    .rms_norm_eps = 1e-6,
    .initializer_range = 0.02,
    .tie_word_embeddings = false,
    .rope = ROPE_DEFAULTS(10000),
    .loss = SIGMOID,
    .beta = 0.1,
    .label_smoothing = 0,
};

/* What a published config.json says otherwise than by a field's own name. */
const struct published published[] = {
    {"head_dim", "head_dim", .absent = "hidden_size/num_attention_heads"},
    {"num_key_value_heads", "num_key_value_heads", .absent = "num_attention_heads"},
    {"hidden_act", .is = "silu"},
    {"*_bias", .is = "false"},
    {"rope_parameters.partial_rotary_factor partial_rotary_factor", .is = "1"},
    ROPE_PUBLISHED("10000"),
};

/* [2 B][T][n D] as [2 B][n][T][D]. */
static tensor heads(tensor x, int n) {
  return transpose(reshape(x, dim(x, 0), dim(x, 1), n, dim(x, 2) / n), 1, 2);
}

static tensor attend(scope s, tensor x, struct rope rope, struct config c) {
  tensor q = linear_no_bias(at(s, "q_proj"), x, c.num_attention_heads * c.head_dim);
  tensor k = linear_no_bias(at(s, "k_proj"), x, c.num_key_value_heads * c.head_dim);
  tensor v = linear_no_bias(at(s, "v_proj"), x, c.num_key_value_heads * c.head_dim);
  q = rotary(heads(q, c.num_attention_heads), rope.cos, rope.sin);
  k = rotary(heads(k, c.num_key_value_heads), rope.cos, rope.sin);
  tensor y = transpose(attention(q, k, heads(v, c.num_key_value_heads), CAUSAL), 1, 2);
  return linear_no_bias(at(s, "o_proj"), reshape(y, dim(x, 0), dim(x, 1), dim(q, 1) * c.head_dim), c.hidden_size);
}

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

/* tokens [2 B][T] to logits [2 B][T][vocab_size]. Padding comes after all that counts, so nothing sees it. */
static tensor language_model(scope s, tensor tokens, struct config c) {
  struct rope rope = rope_angles(c.rope, dim(tokens, 1), c.head_dim);
  tensor x = embedding(at(s, "model.embed_tokens"), tokens, c.vocab_size, c.hidden_size);
  for (int i = 0; i < c.num_hidden_layers; i++) x = block(nth(s, "model.layers", i), x, rope, c);
  x = rms_norm_eps(at(s, "model.norm"), x, c.rms_norm_eps);
  scope head = c.tie_word_embeddings ? at(s, "model.embed_tokens") : at(s, "lm_head");
  return matmul_transposed(x, parameter(head, "weight", c.vocab_size, c.hidden_size));
}

/* The logarithm of each completion's probability, [2 B]; of IPO, its mean over the completion's tokens. */
static tensor log_probability(scope s, tensor tokens, tensor completion_mask, struct config c) {
  const int rows = dim(tokens, 0), last = dim(tokens, 1) - 1;
  tensor logits = slice(language_model(s, tokens, c), 1, 0, last);
  tensor next = reshape(slice(tokens, 1, 1, last), rows, last, 1), counts = slice(completion_mask, 1, 1, last);
  tensor chosen = reshape(gather(logits, 2, next), rows, last);
  tensor all = sum(mul(sub(chosen, log_sum_exp(logits)), counts), 1);
  return c.loss == IPO ? divide(all, sum(counts, 1)) : all;
}

/* input_ids and completion_mask [B][2][T], the mask 1 for each token of a completion, to the rewards of both, [B][2].
 */
tensor predict(scope s, struct config c, tensor input_ids, tensor completion_mask) {
  s = init_normal(s, c.initializer_range);
  tensor tokens = reshape(input_ids, 2 * dim(input_ids, 0), dim(input_ids, 2));
  tensor mask = reshape(completion_mask, dim(tokens, 0), dim(tokens, 1));
  tensor policy = log_probability(at(s, "policy"), tokens, mask, c);
  tensor reference = log_probability(at(s, "reference"), tokens, mask, c);
  return reshape(scale(sub(policy, reference), c.beta), dim(input_ids, 0), 2);
}

/* labels [B]: 1 where the second completion is the preferred one, else 0. */
tensor model(scope s, struct config c, tensor input_ids, tensor completion_mask, tensor labels) {
  tensor rewards = predict(s, c, input_ids, completion_mask);
  tensor margin = reshape(sub(slice(rewards, 1, 1, 1), slice(rewards, 1, 0, 1)), dim(labels, 0));
  margin = mul(margin, shift(scale(cast_float(labels), 2), -1));
  if (c.loss == HINGE) return mean_all(relu(shift(neg(margin), 1)));
  if (c.loss == IPO) return mean_all(square(shift(scale(margin, 1 / c.beta), -1 / (2 * c.beta))));
  tensor right = softplus(neg(margin)), wrong = softplus(margin);
  return mean_all(add(scale(right, 1 - c.label_smoothing), scale(wrong, c.label_smoothing)));
}
