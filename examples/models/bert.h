/* The encoder of BERT (Devlin et al., arXiv:1810.04805), for models with a head each: the arithmetic of transformers'
 * BertModel. All of a sequence is one segment. Tokens that are pad_token_id are padding, which nobody attends to;
 * without one, none is. Whoever includes it has declared struct config, with the fields that are used here.
 *
 * B batch, T tokens of a sequence, C hidden_size, H heads, D = C / H. */
#ifndef BERT_H
#define BERT_H

#include <accel/model.h>

/* What a published config.json says of all of them. */
#define BERT_PUBLISHED                                                                                                 \
  {"hidden_act", .is = "gelu"}, {"position_embedding_type", .is = "absolute"}, {"is_decoder", .is = "false"},          \
      {"add_cross_attention", .is = "false"}, {"tie_word_embeddings", .is = "true"}, {"pooler_*"}, {"directionality"}

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

/* The first segment's words, each with what its position adds, [T][C] or [B][T][C]. */
static tensor embed(scope s, tensor tokens, tensor positions, struct config c) {
  tensor segments = parameter(at(s, "token_type_embeddings"), "weight", c.type_vocab_size, c.hidden_size);
  tensor x = add(embedding(at(s, "word_embeddings"), tokens, c.vocab_size, c.hidden_size), slice(segments, 0, 0, 1));
  return dropout(layer_norm_eps(at(s, "LayerNorm"), add(x, positions), c.layer_norm_eps), c.hidden_dropout_prob);
}

/* tokens [B][T] to what the last layer gives, [B][T][C]. */
static inline tensor encode_from(scope s, tensor tokens, tensor positions, struct config c) {
  tensor x = embed(at(s, "embeddings"), tokens, positions, c);
  for (int i = 0; i < c.num_hidden_layers; i++) x = layer(nth(s, "encoder.layer", i), x, tokens, c);
  return x;
}

/* The same with positions that count all tokens. */
static inline tensor encode(scope s, tensor tokens, struct config c) {
  scope table = at(s, "embeddings.position_embeddings");
  tensor positions = parameter(table, "weight", c.max_position_embeddings, c.hidden_size);
  return encode_from(s, tokens, slice(positions, 0, 0, dim(tokens, 1)), c);
}

#endif
