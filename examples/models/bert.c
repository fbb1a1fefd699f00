/* BERT (Devlin et al., arXiv:1810.04805): the tensor names and the arithmetic of transformers' BertForMaskedLM, so that
 * its checkpoints load from their model.safetensors. All of a sequence is one segment. Tokens that are
 * pad_token_id are padding, which nobody attends to; without one, none is. Targets of -100 do not count.
 *
 * B batch, T tokens of a sequence, C hidden_size, H heads, D = C / H. */
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

/* [B][T][C] as [B][H][T][D]. */
static tensor heads(tensor x, struct config c) {
  x = reshape(x, dim(x, 0), dim(x, 1), c.num_attention_heads, c.hidden_size / c.num_attention_heads);
  return transpose(x, 1, 2);
}

/* What follows every part: a layer, and the norm of its sum with x. */
static tensor output(scope s, tensor y, tensor x, struct config c) {
  y = dropout(linear(at(s, "dense"), y, c.hidden_size), c.hidden_dropout_prob);
  return layer_norm_eps(at(s, "LayerNorm"), add(y, x), c.layer_norm_eps);
}

/* tokens [B][T]: whose keys count. */
static tensor attend(scope s, tensor x, tensor tokens, struct config c) {
  tensor q = heads(linear(at(s, "self.query"), x, c.hidden_size), c);
  tensor k = heads(linear(at(s, "self.key"), x, c.hidden_size), c);
  tensor v = heads(linear(at(s, "self.value"), x, c.hidden_size), c);
  tensor y;
  if (c.pad_token_id < 0) {
    y = attention(q, k, v, FULL);
  } else {
    tensor padding = equal(cast_float(tokens), constant(c.pad_token_id, 1));
    y = attention_bias(q, k, v, padding_bias(shift(neg(padding), 1)));
  }
  y = reshape(transpose(y, 1, 2), dim(x, 0), dim(x, 1), c.hidden_size);
  return output(at(s, "output"), y, x, c);
}

static tensor layer(scope s, tensor x, tensor tokens, struct config c) {
  x = attend(at(s, "attention"), x, tokens, c);
  tensor h = gelu(linear(at(s, "intermediate.dense"), x, c.intermediate_size));
  return output(at(s, "output"), h, x, c);
}

static tensor embed(scope s, tensor tokens, struct config c) {
  tensor places = parameter(at(s, "position_embeddings"), "weight", c.max_position_embeddings, c.hidden_size);
  tensor segments = parameter(at(s, "token_type_embeddings"), "weight", c.type_vocab_size, c.hidden_size);
  tensor x = add(embedding(at(s, "word_embeddings"), tokens, c.vocab_size, c.hidden_size), slice(segments, 0, 0, 1));
  x = layer_norm_eps(at(s, "LayerNorm"), add(x, slice(places, 0, 0, dim(tokens, 1))), c.layer_norm_eps);
  return dropout(x, c.hidden_dropout_prob);
}

/* tokens [B][T] to logits [B][T][vocab_size]. The last layer is the token table again. */
tensor predict(scope s, struct config c, tensor tokens) {
  s = init_normal(s, c.initializer_range);
  tensor x = embed(at(s, "bert.embeddings"), tokens, c);
  for (int i = 0; i < c.num_hidden_layers; i++) x = layer(nth(s, "bert.encoder.layer", i), x, tokens, c);
  scope head = at(s, "cls.predictions");
  x = gelu(linear(at(head, "transform.dense"), x, c.hidden_size));
  x = layer_norm_eps(at(head, "transform.LayerNorm"), x, c.layer_norm_eps);
  tensor table = parameter(at(s, "bert.embeddings.word_embeddings"), "weight", c.vocab_size, c.hidden_size);
  return add(matmul_transposed(x, table), parameter(init_zeros(head), "bias", c.vocab_size));
}

tensor model(scope s, struct config c, tensor tokens, tensor targets) {
  return cross_entropy(predict(s, c, tokens), targets);
}
