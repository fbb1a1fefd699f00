/* BERT (Devlin et al., arXiv:1810.04805) with a head that says what kind of text a sequence is: the tensor names and
 * the arithmetic of transformers' BertForSequenceClassification. A row of the data is a text, a column of it a token;
 * texts that are shorter end in pad_token_id.
 *
 * B batch, T columns, C hidden_size, L num_labels. */
#include <accel/model.h>

struct config {
  int num_hidden_layers, num_attention_heads, hidden_size, intermediate_size;
  int vocab_size, max_position_embeddings, type_vocab_size;
  int pad_token_id; /* -1: none */
  int num_labels;
  double layer_norm_eps, initializer_range, hidden_dropout_prob;
};

const struct config defaults = {
    .max_position_embeddings = 512,
    .type_vocab_size = 2,
    .pad_token_id = -1,
    .layer_norm_eps = 1e-12,
    .initializer_range = 0.02,
    .hidden_dropout_prob = 0,
};

#include "bert.h"

const char *const architectures[] = {"BertForSequenceClassification"};

/* What a published config.json says otherwise than by a field's own name. */
const struct published published[] = {
    {"num_labels id2label.#", "num_labels"},
    BERT_PUBLISHED,
};

/* features [B][T], token numbers, to logits [B][L], from what the encoder makes of the first token. */
tensor predict(scope s, struct config c, tensor features) {
  s = init_normal(s, c.initializer_range);
  tensor x = encode(at(s, "bert"), cast_index(features, c.vocab_size), c);
  x = reshape(slice(x, 1, 0, 1), dim(x, 0), c.hidden_size);
  x = tanh_of(linear(at(s, "bert.pooler.dense"), x, c.hidden_size));
  return linear(at(s, "classifier"), dropout(x, c.hidden_dropout_prob), c.num_labels);
}

tensor model(scope s, struct config c, tensor features, tensor labels) {
  return cross_entropy(predict(s, c, features), labels);
}
