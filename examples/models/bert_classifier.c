/* BERT (Devlin et al., arXiv:1810.04805) with a head that labels a text, or a pair of texts: the tensor names and the
 * arithmetic of transformers' BertForSequenceClassification, and its three losses. Its inputs are the arrays that
 * `accel-gen data --label` writes.
 *
 * B batch, T tokens of a sequence, C hidden_size, L num_labels. */
#include <accel/model.h>

struct config {
  int num_hidden_layers, num_attention_heads, hidden_size, intermediate_size;
  int vocab_size, max_position_embeddings, type_vocab_size;
  int num_labels;
  double layer_norm_eps, initializer_range, hidden_dropout_prob;
};

const struct config defaults = {
    .max_position_embeddings = 512,
    .type_vocab_size = 2,
    .layer_norm_eps = 1e-12,
    .initializer_range = 0.02,
    .hidden_dropout_prob = 0,
};

#include "bert.h"

const char *const architectures[] = {"BertForSequenceClassification"};

/* What a published config.json says otherwise than by a field's own name. */
const struct published published[] = {
    {"model_type", .is = "bert"},
    {"num_labels id2label.#", "num_labels"},
    {"problem_type"},
    BERT_PUBLISHED,
};

struct published_inputs published_inputs(struct config c) {
  return (struct published_inputs){{{"input_ids", {c.max_position_embeddings}, .whole = true},
                                    {"attention_mask", {c.max_position_embeddings}},
                                    {"token_type_ids", {c.max_position_embeddings}, .whole = true},
                                    {"labels", .whole = c.num_labels > 1}}};
}

/* input_ids and token_type_ids [B][T], attention_mask [B][T], 1 for a token and 0 for padding, to logits [B][L], from
 * what the encoder makes of the first token. */
tensor predict(scope s, struct config c, tensor input_ids, tensor attention_mask, tensor token_type_ids) {
  s = init_normal(s, c.initializer_range);
  scope bert = at(s, "bert"), types = at(bert, "embeddings.token_type_embeddings");
  tensor segments = embedding(types, token_type_ids, c.type_vocab_size, c.hidden_size);
  tensor positions = position_of_each(bert, input_ids, c);
  tensor x = encode_masked(bert, input_ids, segments, positions, attention_mask, 1, c);
  x = reshape(slice(x, 1, 0, 1), dim(x, 0), c.hidden_size);
  x = tanh_of(linear(at(s, "bert.pooler.dense"), x, c.hidden_size));
  return linear(at(s, "classifier"), dropout(x, c.hidden_dropout_prob), c.num_labels);
}

/* labels [B], the number of a class or, with one label, a value; or [B][L], 1 for each label that is right. */
tensor model(scope s, struct config c, tensor input_ids, tensor attention_mask, tensor token_type_ids, tensor labels) {
  tensor logits = predict(s, c, input_ids, attention_mask, token_type_ids);
  if (rank(labels) == 2) return binary_cross_entropy_with_logits(logits, labels);
  if (c.num_labels == 1) return mse_loss(reshape(logits, dim(logits, 0)), labels);
  return cross_entropy(logits, labels);
}
