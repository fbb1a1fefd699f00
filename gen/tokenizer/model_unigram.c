/* Unigram (Kudo, arXiv:1804.10959): of all ways to spell a word the one whose tokens have the largest sum of scores,
 * found from left to right (Viterbi, 1967). As in SentencePiece, an unknown character has the least score of the
 * vocabulary less 10, and several of them are one. */
#include <math.h>
#include <stdlib.h>

#include "gen/tokenizer/bytes.h"
#include "gen/tokenizer/reading.h"

/* ---- Reading ---- */

static bool read_tokens(const struct reading *reading, const json_t *list) {
  struct tokenizer *tokenizer = reading->tokenizer;
  size_t count = json_array_size(list), bytes = 0;
  for (size_t i = 0; i < count; i++) bytes += json_string_length(json_array_get(json_array_get(list, i), 0));
  double *scores = calloc(count + 1, sizeof *scores), least = INFINITY;
  tokenizer->data.scores = scores;
  tokenizer->vocabulary = trie_new(bytes);
  if (scores == NULL || tokenizer->vocabulary == NULL) return reading_no_memory(reading);
  for (size_t i = 0; i < count; i++) {
    const json_t *text = json_array_get(json_array_get(list, i), 0),
                 *score = json_array_get(json_array_get(list, i), 1);
    if (!json_is_string(text) || !json_is_number(score))
      return reading_refuse(reading, "model.vocab", "a token is not a text and a score");
    scores[i] = json_number_value(score);
    if (scores[i] < least) least = scores[i];
    trie_add(tokenizer->vocabulary, json_string_value(text), json_string_length(text), (uint32_t)i);
  }
  tokenizer->tokens_end = (uint32_t)count;
  tokenizer->data.unknown_score = least - 10;
  return true;
}

static bool read_unigram(const struct reading *reading, const json_t *model) {
  struct model_data *data = &reading->tokenizer->data;
  const json_t *list = json_object_get(model, "vocab"), *unknown = json_object_get(model, "unk_id");
  if (!json_is_array(list) || json_array_size(list) == 0 || json_array_size(list) > 0x7ffffffe)
    return reading_refuse(reading, "model.vocab", "this is not a list of texts and scores");
  if (!read_tokens(reading, list)) return false;
  read_fallback(reading, model);
  data->unknown = TOKEN_NONE;
  if (unknown == NULL || json_is_null(unknown)) return true;
  if (!json_token(unknown, &data->unknown) || data->unknown >= json_array_size(list))
    return reading_refuse(reading, "model.unk_id", "this is not a token of the vocabulary");
  return true;
}

/* ---- A word ---- */

static void offer(struct best_path *path, double score, size_t from, uint32_t token) {
  if (path->from == SIZE_MAX || score > path->score) *path = (struct best_path){score, from, token};
}

/* The ways from a byte of a word on: by every token that begins there, and by an unknown character where none is as
 * long as the character. */
static bool go_on(const struct encoder *encoder, const char *word, size_t size, size_t at, size_t length) {
  const struct tokenizer *tokenizer = encoder->tokenizer;
  const struct model_data *data = &tokenizer->data;
  struct best_path *paths = encoder->paths;
  uint32_t node = TRIE_ROOT, token;
  bool single = false;
  for (size_t end = at + 1; end <= size && node != TRIE_NONE; end++) {
    node = trie_step(tokenizer->vocabulary, node, (unsigned char)word[end - 1]);
    if (!trie_token(tokenizer->vocabulary, node, &token)) continue;
    offer(&paths[end], data->scores[token] + paths[at].score, at, token);
    single |= end - at == length;
  }
  if (single) return true;
  offer(&paths[at + length], data->unknown_score + paths[at].score, at, data->unknown);
  return data->unknown != TOKEN_NONE;
}

/* The tokens of a piece of the way: the one that it is, those of its bytes, or the unknown one. They are put before
 * the `count` ones at the end of an array that ends at `end`; returns how many there are. */
static size_t put_before(const struct tokenizer *tokenizer, const char *text, size_t size, uint32_t *end,
                         size_t count) {
  const struct model_data *data = &tokenizer->data;
  uint32_t token;
  bool is_token = trie_find(tokenizer->vocabulary, text, size, &token), falls = !is_token && data->falls_back;
  for (size_t i = 0; falls && i < size; i++) falls = data->fallback[(unsigned char)text[i]] != TOKEN_NONE;
  for (size_t i = size; falls && i > 0; i--) end[-(ptrdiff_t)++count] = data->fallback[(unsigned char)text[i - 1]];
  if (!falls) end[-(ptrdiff_t)++count] = is_token ? token : data->unknown;
  return count;
}

static bool reserve_paths(struct encoder *encoder, size_t count) {
  if (count <= encoder->n_paths) return true;
  struct best_path *grown = realloc(encoder->paths, count * sizeof *grown);
  if (grown == NULL) return false;
  encoder->paths = grown;
  encoder->n_paths = count;
  return true;
}

static enum word_result encode(struct encoder *encoder, const char *word, size_t size, size_t *count) {
  const struct tokenizer *tokenizer = encoder->tokenizer;
  const struct model_data *data = &tokenizer->data;
  if (!reserve_paths(encoder, size + 1) || !encoder_reserve(encoder, size)) return WORD_NO_MEMORY;
  for (size_t i = 0; i <= size; i++) encoder->paths[i] = (struct best_path){.from = SIZE_MAX};
  encoder->paths[0].score = 0;
  for (size_t at = 0, length; at < size; at += length) {
    character_at(word + at, size - at, &length);
    if (!go_on(encoder, word, size, at, length)) return WORD_UNKNOWN;
  }
  uint32_t *end = encoder->tokens + size;
  *count = 0;
  for (size_t to = size, from; to > 0; to = from) {
    uint32_t token = encoder->paths[to].token;
    from = encoder->paths[to].from;
    while (token == data->unknown && from > 0 && encoder->paths[from].token == data->unknown)
      from = encoder->paths[from].from;
    *count = put_before(tokenizer, word + from, to - from, end, *count);
  }
  for (size_t i = 0; i < *count; i++) encoder->tokens[i] = end[(ptrdiff_t)i - (ptrdiff_t)*count];
  return WORD_ENCODED;
}

const struct model model_unigram = {"Unigram", read_unigram, encode};
