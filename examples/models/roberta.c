/* RoBERTa and XLM-RoBERTa (Liu et al., arXiv:1907.11692; Conneau et al., arXiv:1911.02116): the tensor names and the
 * arithmetic of transformers' RobertaForMaskedLM, so that its checkpoints load from their model.safetensors. BERT's
 * encoder, but positions count the tokens that are not padding, from pad_token_id + 1 on. Targets of -100 do not count.
 *
 * B batch, T tokens of a sequence, C hidden_size. */
#include <accel/model.h>
#include <assert.h>

struct config {
  int num_hidden_layers, num_attention_heads, hidden_size, intermediate_size;
  int vocab_size, max_position_embeddings, type_vocab_size, pad_token_id;
  double layer_norm_eps, initializer_range, hidden_dropout_prob;
};

const struct config defaults = {
    .max_position_embeddings = 514,
    .type_vocab_size = 1,
    .pad_token_id = 1,
    .layer_norm_eps = 1e-5,
    .initializer_range = 0.02,
    .hidden_dropout_prob = 0,
};

#include "bert_tokens.h"

const char *const architectures[] = {"RobertaForMaskedLM", "XLMRobertaForMaskedLM", "CamembertForMaskedLM"};

/* Tensors of other classes that published files have. */
const char *const other_heads[] = {"roberta.pooler.*"};

/* What a published config.json says otherwise than by a field's own name. */
const struct published published[] = {
    {"model_type", .is = "roberta xlm-roberta camembert"},
    {"pad_token_id", "pad_token_id"},
    {"type_vocab_size", "type_vocab_size", .absent = "2"},
    {"max_position_embeddings", "max_position_embeddings", .absent = "512"},
    {"layer_norm_eps", "layer_norm_eps", .absent = "1e-12"},
    BERT_PUBLISHED,
};

/* The longest text, after the positions that padding takes. */
struct published_inputs published_inputs(struct config c) {
  assert(c.max_position_embeddings - c.pad_token_id > 1 && "max_position_embeddings is above pad_token_id + 1");
  return (struct published_inputs){{{"tokens", {c.max_position_embeddings - c.pad_token_id - 1}}}};
}

/* Of each token that is not padding, how many of them there are up to it, after pad_token_id; int32 [B][T]. */
static tensor positions(tensor tokens, struct config c) {
  assert(dim(tokens, 1) + c.pad_token_id < c.max_position_embeddings &&
         "sequence_length + pad_token_id is below max_position_embeddings");
  tensor present = shift(neg(equal(cast_float(tokens), constant(c.pad_token_id, 1))), 1);
  return cast_index(shift(mul(cumsum(present, 1), present), c.pad_token_id), c.max_position_embeddings);
}

/* tokens [B][T] to logits [B][T][vocab_size]. The last layer is the token table again. */
tensor predict(scope s, struct config c, tensor tokens) {
  s = init_normal(s, c.initializer_range);
  scope table = at(s, "roberta.embeddings.position_embeddings");
  tensor position = embedding(table, positions(tokens, c), c.max_position_embeddings, c.hidden_size);
  tensor x = encode_from(at(s, "roberta"), tokens, position, c);
  scope head = at(s, "lm_head");
  x = gelu(linear(at(head, "dense"), x, c.hidden_size));
  x = layer_norm_eps(at(head, "layer_norm"), x, c.layer_norm_eps);
  tensor words = parameter(at(s, "roberta.embeddings.word_embeddings"), "weight", c.vocab_size, c.hidden_size);
  return add(matmul_transposed(x, words), parameter(init_zeros(head), "bias", c.vocab_size));
}

tensor model(scope s, struct config c, tensor tokens, tensor targets) {
  return cross_entropy(predict(s, c, tokens), targets);
}
