/* BERT (Devlin et al., arXiv:1810.04805): the tensor names and the arithmetic of transformers' BertForMaskedLM, so that
 * its checkpoints load from their model.safetensors. Targets of -100 do not count.
 *
 * B batch, T tokens of a sequence, C hidden_size. */
#include <accel/model.h>

struct config {
  int num_hidden_layers, num_attention_heads, hidden_size, intermediate_size;
  int vocab_size, max_position_embeddings, type_vocab_size;
  int pad_token_id; /* -1: none */
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

#include "bert_tokens.h"

const char *const architectures[] = {"BertForMaskedLM"};

/* Tensors of other classes that published files have. */
const char *const other_heads[] = {"bert.pooler.*", "cls.seq_relationship.*"};

/* What a published config.json says otherwise than by a field's own name. */
const struct published published[] = {
    {"model_type", .is = "bert"},
    BERT_PUBLISHED,
};

/* tokens [B][T] to logits [B][T][vocab_size]. The last layer is the token table again. */
tensor predict(scope s, struct config c, tensor tokens) {
  s = init_normal(s, c.initializer_range);
  scope bert = at(s, "bert");
  tensor x = encode_from(bert, tokens, position_of_each(bert, tokens, c), c);
  scope head = at(s, "cls.predictions");
  x = gelu(linear(at(head, "transform.dense"), x, c.hidden_size));
  x = layer_norm_eps(at(head, "transform.LayerNorm"), x, c.layer_norm_eps);
  tensor table = parameter(at(s, "bert.embeddings.word_embeddings"), "weight", c.vocab_size, c.hidden_size);
  return add(matmul_transposed(x, table), parameter(init_zeros(head), "bias", c.vocab_size));
}

tensor model(scope s, struct config c, tensor tokens, tensor targets) {
  return cross_entropy(predict(s, c, tokens), targets);
}
