/* The encoder of BERT (Devlin et al., arXiv:1810.04805), for models with a head each: the arithmetic of transformers'
 * BertModel. Whoever includes it has declared struct config, with the fields that are used here.
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

/* mask [B][T]: 1 for a key, 0 for padding, which nobody attends to; it is not looked at where nothing is `masked`. */
static tensor attend(scope s, tensor x, tensor mask, int masked, struct config c) {
  tensor q = heads(linear(at(s, "self.query"), x, c.hidden_size), c);
  tensor k = heads(linear(at(s, "self.key"), x, c.hidden_size), c);
  tensor v = heads(linear(at(s, "self.value"), x, c.hidden_size), c);
  tensor y;
  if (masked)
    y = attention_bias(q, k, v, padding_bias(mask));
  else
    y = attention(q, k, v, FULL);
  y = reshape(transpose(y, 1, 2), dim(x, 0), dim(x, 1), c.hidden_size);
  return output(at(s, "output"), y, x, c);
}

static tensor layer(scope s, tensor x, tensor mask, int masked, struct config c) {
  x = attend(at(s, "attention"), x, mask, masked, c);
  tensor h = gelu(linear(at(s, "intermediate.dense"), x, c.intermediate_size));
  return output(at(s, "output"), h, x, c);
}

/* Words, each with what its segment and its position add, which broadcast to [B][T][C]. */
static tensor embed(scope s, tensor tokens, tensor segments, tensor positions, struct config c) {
  tensor x = add(embedding(at(s, "word_embeddings"), tokens, c.vocab_size, c.hidden_size), segments);
  return dropout(layer_norm_eps(at(s, "LayerNorm"), add(x, positions), c.layer_norm_eps), c.hidden_dropout_prob);
}

/* tokens [B][T] to what the last layer gives, [B][T][C]; segments and positions as for embed, mask and masked as for
 * attend. */
static inline tensor encode_masked(scope s, tensor tokens, tensor segments, tensor positions, tensor mask, int masked,
                                   struct config c) {
  tensor x = embed(at(s, "embeddings"), tokens, segments, positions, c);
  for (int i = 0; i < c.num_hidden_layers; i++) x = layer(nth(s, "encoder.layer", i), x, mask, masked, c);
  return x;
}

/* What the positions of tokens [B][T] add, which count all tokens: [T][C]. */
static inline tensor position_of_each(scope s, tensor tokens, struct config c) {
  scope table = at(s, "embeddings.position_embeddings");
  return slice(parameter(table, "weight", c.max_position_embeddings, c.hidden_size), 0, 0, dim(tokens, 1));
}

#endif
