/* BPE: a word is the tokens of its characters, which merges join. Of byte-level BPE the characters are bytes; of
 * others, those of the text, and one that is no token is its bytes' tokens or unknown. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gen/tokenizer/bytes.h"
#include "gen/tokenizer/reading.h"

/* ---- Bytes as characters ---- */

uint32_t byte_character(int byte) {
  uint32_t next = 256;
  for (int b = 0; b < 256; b++) {
    bool printable = (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174;
    if (b == byte) return printable ? (uint32_t)b : next;
    next += !printable;
  }
  return 0;
}

/* In UTF-8, where all are of one or two bytes. */
static size_t spell(int byte, char *out) {
  uint32_t character = byte_character(byte);
  if (character < 128) return out[0] = (char)character, 1;
  out[0] = (char)(0xc0 | character >> 6);
  out[1] = (char)(0x80 | (character & 63));
  return 2;
}

/* ---- Reading ---- */

/* The tokens of bytes, within a word and at its end. */
static bool read_bytes(const struct reading *reading) {
  struct tokenizer *tokenizer = reading->tokenizer;
  const char *suffix = tokenizer->data.suffix;
  for (int i = 0; i < 2 * 256; i++) {
    char text[2];
    uint32_t node = trie_descend(tokenizer->vocabulary, TRIE_ROOT, text, spell(i % 256, text));
    if (i >= 256) node = trie_descend(tokenizer->vocabulary, node, suffix, strlen(suffix));
    if (!trie_token(tokenizer->vocabulary, node, &tokenizer->data.bytes[i / 256][i % 256]))
      return reading_refuse(reading, "model.vocab", "a byte is not a token, so not every text has tokens");
  }
  return true;
}

enum { MOST_BYTES = 2048 }; /* of a token's spelling */

/* A merge as it is written: "a b", or ["a", "b"]. */
static bool read_halves(const json_t *merge, char left[MOST_BYTES], char right[MOST_BYTES]) {
  const char *first = json_string_value(json_is_array(merge) ? json_array_get(merge, 0) : merge);
  const char *second = json_string_value(json_array_get(merge, 1));
  if (first == NULL) return false;
  size_t size = json_is_array(merge) ? strlen(first) : strcspn(first, " ");
  if (!json_is_array(merge)) second = first[size] == ' ' ? first + size + 1 : NULL;
  if (second == NULL || size >= MOST_BYTES || strlen(second) >= MOST_BYTES) return false;
  memcpy(left, first, size);
  left[size] = '\0';
  memcpy(right, second, strlen(second) + 1);
  return true;
}

static bool read_merges(const struct reading *reading, const json_t *model) {
  struct tokenizer *tokenizer = reading->tokenizer;
  const struct trie *vocabulary = tokenizer->vocabulary;
  const json_t *merges = json_object_get(model, "merges");
  char left[MOST_BYTES], right[MOST_BYTES];
  if (!json_is_array(merges)) return reading_refuse(reading, "model.merges", "this is not a list of merges");
  size_t count = json_array_size(merges);
  tokenizer->data.bpe = bpe_new(count);
  if (tokenizer->data.bpe == NULL) return reading_no_memory(reading);
  for (size_t i = 0; i < count; i++) {
    uint32_t a, b, c;
    bool good = read_halves(json_array_get(merges, i), left, right);
    uint32_t node = good ? trie_descend(vocabulary, TRIE_ROOT, left, strlen(left)) : TRIE_NONE;
    if (!trie_token(vocabulary, node, &a) || !trie_find(vocabulary, right, strlen(right), &b) ||
        !trie_token(vocabulary, trie_descend(vocabulary, node, right, strlen(right)), &c)) {
      rt_problem(reading->problem, "%s: model.merges: merge %zu does not join two tokens to one of the vocabulary",
                 reading->path, i);
      return rt_help(reading->problem, "the file was changed: fetch it again");
    }
    bpe_merge(tokenizer->data.bpe, a, b, c);
  }
  return true;
}

static bool read_bpe(const struct reading *reading, const json_t *model) {
  static const char *const absent[] = {"dropout", "continuing_subword_prefix"};
  struct model_data *data = &reading->tokenizer->data;
  for (size_t i = 0; i < sizeof absent / sizeof *absent; i++)
    if (!json_is_nothing(json_object_get(model, absent[i]))) return reading_refuse(reading, "model", absent[i]);
  const char *suffix = json_string_value(json_object_get(model, "end_of_word_suffix"));
  data->suffix = suffix != NULL ? suffix : "";
  data->ignores_merges = json_is_true(json_object_get(model, "ignore_merges"));
  data->fuses_unknown = json_is_true(json_object_get(model, "fuse_unk"));
  if (!read_vocabulary(reading, model) || !read_unknown(reading, model)) return false;
  if (data->falls_back && *data->suffix != '\0')
    return reading_refuse(reading, "model", "byte_fallback with an end_of_word_suffix");
  if (reading->tokenizer->maps_bytes && !read_bytes(reading)) return false;
  if (!reading->tokenizer->maps_bytes && !model_knows_all(data))
    return reading_refuse(reading, "model",
                          "there is neither an unk_token nor one for each byte, so not every text has tokens");
  return read_merges(reading, model);
}

/* ---- A word ---- */

static bool is_token(const struct tokenizer *tokenizer, const char *word, size_t size, uint32_t *token) {
  uint32_t node = TRIE_ROOT;
  if (!tokenizer->maps_bytes) return trie_find(tokenizer->vocabulary, word, size, token);
  for (size_t i = 0; i < size && node != TRIE_NONE; i++) {
    char text[2];
    node = trie_descend(tokenizer->vocabulary, node, text, spell((unsigned char)word[i], text));
  }
  return trie_token(tokenizer->vocabulary, node, token);
}

static size_t put_bytes(struct encoder *encoder, const char *word, size_t size) {
  for (size_t i = 0; i < size; i++)
    encoder->tokens[i] = encoder->tokenizer->data.bytes[i + 1 == size][(unsigned char)word[i]];
  return size;
}

/* Unknown characters that wait to become one token or several, as the library has them: bytes that encode a character
 * do not end such a run, and come before it. */
static size_t put_characters(struct encoder *encoder, const char *word, size_t size) {
  const struct tokenizer *tokenizer = encoder->tokenizer;
  const struct model_data *data = &tokenizer->data;
  size_t count = 0, length;
  bool waits = false;
  for (size_t at = 0; at < size; at += length) {
    uint32_t token;
    character_at(word + at, size - at, &length);
    uint32_t node = trie_descend(tokenizer->vocabulary, TRIE_ROOT, word + at, length);
    if (at + length == size) node = trie_descend(tokenizer->vocabulary, node, data->suffix, strlen(data->suffix));
    bool known = trie_token(tokenizer->vocabulary, node, &token), falls = !known && data->falls_back;
    for (size_t i = 0; falls && i < length; i++) falls = data->fallback[(unsigned char)word[at + i]] != TOKEN_NONE;
    for (size_t i = 0; falls && i < length; i++) encoder->tokens[count++] = data->fallback[(unsigned char)word[at + i]];
    if (falls) continue;
    if (waits && (known || !data->fuses_unknown)) encoder->tokens[count++] = data->unknown;
    if (known) encoder->tokens[count++] = token;
    waits = !known;
  }
  if (waits) encoder->tokens[count++] = data->unknown;
  return count;
}

static enum word_result encode(struct encoder *encoder, const char *word, size_t size, size_t *count) {
  const struct tokenizer *tokenizer = encoder->tokenizer;
  uint32_t whole;
  if (!encoder_reserve(encoder, size)) return WORD_NO_MEMORY;
  if (tokenizer->data.ignores_merges && is_token(tokenizer, word, size, &whole)) {
    encoder->tokens[0] = whole;
    *count = 1;
    return WORD_ENCODED;
  }
  *count = tokenizer->maps_bytes ? put_bytes(encoder, word, size) : put_characters(encoder, word, size);
  return bpe_join(tokenizer->data.bpe, &encoder->bpe, encoder->tokens, count) ? WORD_ENCODED : WORD_NO_MEMORY;
}

const struct model model_bpe = {"BPE", read_bpe, encode};
