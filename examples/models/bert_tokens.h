/* The encoder of bert.h over tokens alone: all of a sequence is one segment. Tokens that are pad_token_id are padding,
 * which nobody attends to; without one, none is. */
#ifndef BERT_TOKENS_H
#define BERT_TOKENS_H

#include "bert.h"

/* tokens [B][T] to what the last layer gives, [B][T][C]; positions as for embed. */
static inline tensor encode_from(scope s, tensor tokens, tensor positions, struct config c) {
  scope table = at(s, "embeddings.token_type_embeddings");
  tensor segment = slice(parameter(table, "weight", c.type_vocab_size, c.hidden_size), 0, 0, 1);
  if (c.pad_token_id < 0) return encode_masked(s, tokens, segment, positions, tokens, 0, c);
  tensor padding = equal(cast_float(tokens), constant(c.pad_token_id, 1));
  return encode_masked(s, tokens, segment, positions, shift(neg(padding), 1), 1, c);
}

#endif
