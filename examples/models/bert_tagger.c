/* BERT (Devlin et al., arXiv:1810.04805) with a head that labels each token: the tensor names and the arithmetic of
 * transformers' BertForTokenClassification. Its inputs are the arrays that `accel-gen data --task token-classification`
 * writes; tokens with a label of -100 do not count.
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

const char *const architectures[] = {"BertForTokenClassification"};

/* What a published config.json says otherwise than by a field's own name. */
const struct published published[] = {
    {"model_type", .is = "bert"},
    {"num_labels id2label.#", "num_labels"},
    BERT_PUBLISHED,
};

struct published_inputs published_inputs(struct config c) {
  return (struct published_inputs){{{"input_ids", {c.max_position_embeddings}, .whole = true},
                                    {"attention_mask", {c.max_position_embeddings}},
                                    {"token_type_ids", {c.max_position_embeddings}, .whole = true},
                                    {"labels", {c.max_position_embeddings}, .whole = true}}};
}

/* input_ids and token_type_ids [B][T], attention_mask [B][T], 1 for a token and 0 for padding, to logits [B][T][L]. */
tensor predict(scope s, struct config c, tensor input_ids, tensor attention_mask, tensor token_type_ids) {
  s = init_normal(s, c.initializer_range);
  scope bert = at(s, "bert"), types = at(bert, "embeddings.token_type_embeddings");
  tensor segments = embedding(types, token_type_ids, c.type_vocab_size, c.hidden_size);
  tensor positions = position_of_each(bert, input_ids, c);
  tensor x = encode_masked(bert, input_ids, segments, positions, attention_mask, 1, c);
  return linear(at(s, "classifier"), dropout(x, c.hidden_dropout_prob), c.num_labels);
}

tensor model(scope s, struct config c, tensor input_ids, tensor attention_mask, tensor token_type_ids, tensor labels) {
  return cross_entropy(predict(s, c, input_ids, attention_mask, token_type_ids), labels);
}
