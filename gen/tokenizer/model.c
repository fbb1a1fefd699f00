#include "gen/tokenizer/model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gen/tokenizer/reading.h"

void model_free(struct model_data *data) {
  bpe_free(data->bpe);
  free((void *)data->scores);
}

bool model_knows_all(const struct model_data *data) {
  bool all = data->falls_back;
  for (int byte = 0; byte < 256; byte++) all &= data->fallback[byte] != TOKEN_NONE;
  return all || data->unknown != TOKEN_NONE;
}

bool read_vocabulary(const struct reading *reading, const json_t *model) {
  struct tokenizer *tokenizer = reading->tokenizer;
  json_t *vocabulary = json_object_get(model, "vocab");
  const char *text;
  json_t *value;
  size_t bytes = 0;
  if (!json_is_object(vocabulary))
    return reading_refuse(reading, "model.vocab", "this is not a map of texts to numbers");
  json_object_foreach(vocabulary, text, value) bytes += strlen(text);
  tokenizer->vocabulary = trie_new(bytes);
  if (tokenizer->vocabulary == NULL) return reading_no_memory(reading);
  json_object_foreach(vocabulary, text, value) {
    uint32_t token;
    if (!json_token(value, &token)) return reading_refuse(reading, "model.vocab", "a token has no number from 0 on");
    if (token >= tokenizer->tokens_end) tokenizer->tokens_end = token + 1;
    trie_add(tokenizer->vocabulary, text, strlen(text), token);
  }
  return true;
}

void read_fallback(const struct reading *reading, const json_t *model) {
  struct model_data *data = &reading->tokenizer->data;
  data->falls_back = json_is_true(json_object_get(model, "byte_fallback"));
  for (int byte = 0; byte < 256; byte++) {
    char text[8];
    int size = snprintf(text, sizeof text, "<0x%02X>", (unsigned)byte);
    if (!trie_find(reading->tokenizer->vocabulary, text, (size_t)size, &data->fallback[byte]))
      data->fallback[byte] = TOKEN_NONE;
  }
}

bool read_unknown(const struct reading *reading, const json_t *model) {
  struct model_data *data = &reading->tokenizer->data;
  const json_t *unknown = json_object_get(model, "unk_token");
  data->unknown = TOKEN_NONE;
  read_fallback(reading, model);
  if (json_is_string(unknown) && !trie_find(reading->tokenizer->vocabulary, json_string_value(unknown),
                                            json_string_length(unknown), &data->unknown))
    return reading_refuse(reading, "model.unk_token", "this is not a token of the vocabulary");
  return true;
}

/* ---- WordLevel: a word is a token, or unknown ---- */

static bool read_words(const struct reading *reading, const json_t *model) {
  return read_vocabulary(reading, model) && read_unknown(reading, model);
}

static enum word_result encode_whole(struct encoder *encoder, const char *word, size_t size, size_t *count) {
  const struct tokenizer *tokenizer = encoder->tokenizer;
  *count = 1;
  if (!trie_find(tokenizer->vocabulary, word, size, encoder->tokens)) encoder->tokens[0] = tokenizer->data.unknown;
  return encoder->tokens[0] != TOKEN_NONE ? WORD_ENCODED : WORD_UNKNOWN;
}

const struct model model_word_level = {"WordLevel", read_words, encode_whole};
