/* Llama with a head that gives a prompt and its completion a reward, trained on pairs of completions, of which one is
 * preferred, by the model of Bradley and Terry (Ouyang et al., arXiv:2203.02155, equation 1): the tensor names and the
 * arithmetic of transformers' LlamaForSequenceClassification with one label. Its inputs are the arrays that `accel-gen
 * data --task preference` writes.
 *
 * B batch, T tokens of a prompt and a completion, C hidden_size, D head_dim. */
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

const char *const architectures[] = {"LlamaForSequenceClassification"};

/* What a published config.json says otherwise than by a field's own name. The last token is that of attention_mask, not
 * the one before the first pad_token_id: the padding must be a token that no text has. */
const struct published published[] = {
    {"model_type", .is = "llama"},
    {"head_dim", "head_dim", .absent = "hidden_size/num_attention_heads"},
    {"num_key_value_heads", "num_key_value_heads", .absent = "num_attention_heads"},
    {"hidden_act", .is = "silu"},
    {"*_bias", .is = "false"},
    {"rope_parameters.partial_rotary_factor partial_rotary_factor", .is = "1"},
    {"num_labels id2label.#", .is = "1", .absent = "2"},
    {"problem_type"},
    {"tie_word_embeddings"},
    ROPE_PUBLISHED("10000"),
};

/* Of pairs of any length, those of 16 tokens. */
struct published_inputs published_inputs(struct config c) {
  (void)c;
  return (struct published_inputs){
      {{"input_ids", {2, 16}, .whole = true}, {"attention_mask", {2, 16}}, {"labels", .whole = true}}};
}

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

/* input_ids and attention_mask [B][2][T], the mask 1 for a token and 0 for padding after it, to the rewards of both
 * completions, [B][2], from what the last layer makes of the last token. */
tensor predict(scope s, struct config c, tensor input_ids, tensor attention_mask) {
  s = init_normal(s, c.initializer_range);
  const int rows = 2 * dim(input_ids, 0), length = dim(input_ids, 2);
  tensor mask = reshape(attention_mask, rows, length);
  tensor last = sub(mask, pad(slice(mask, 1, 1, length - 1), 1, 0, 1));
  struct rope rope = rope_angles(c.rope, length, c.head_dim);
  tensor x = embedding(at(s, "model.embed_tokens"), reshape(input_ids, rows, length), c.vocab_size, c.hidden_size);
  for (int i = 0; i < c.num_hidden_layers; i++) x = block(nth(s, "model.layers", i), x, rope, c);
  x = sum(mul(rms_norm_eps(at(s, "model.norm"), x, c.rms_norm_eps), reshape(last, rows, length, 1)), 1);
  return reshape(linear_no_bias(at(s, "score"), x, 1), dim(input_ids, 0), 2);
}

/* labels [B]: the number of the preferred completion. The loss is -log sigmoid of how much more reward that one has. */
tensor model(scope s, struct config c, tensor input_ids, tensor attention_mask, tensor labels) {
  return cross_entropy(predict(s, c, input_ids, attention_mask), labels);
}
