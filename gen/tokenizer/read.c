/* tokenizer.json, as the library tokenizers writes it (tokenizers/src/tokenizer/serialization.rs): what of it is read,
 * and what is refused. Truncation, padding and the post-processor concern requests to a model, not a corpus: they are
 * left out. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gen/tokenizer/parts.h"
#include "gen/tokenizer/tokenizer.h"

/* GPT-2's (encoder.py), as ByteLevel has it. */
static const char gpt2_words[] = "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";

struct reading {
  struct tokenizer *tokenizer;
  const char *path;
  struct problem *problem;
};

static bool refuse(const struct reading *reading, const char *key, const char *what, const char *cure) {
  rt_problem(reading->problem, "%s: %s: %s", reading->path, key, what);
  return rt_help(reading->problem, "%s", cure);
}

static const char other_cure[] =
    "a tokenizer of byte-level BPE is read, as GPT-2, Llama 3 and Qwen have; make the tokens "
    "with the library tokenizers, and give them as format npy_tokens";

/* A member that is null, false, 0 or an empty text says nothing. */
static bool is_nothing(const json_t *value) {
  return value == NULL || json_is_null(value) || json_is_false(value) ||
         (json_is_number(value) && json_number_value(value) == 0) ||
         (json_is_string(value) && json_string_length(value) == 0);
}

static bool is_text(const json_t *value, const char *text) {
  return json_is_string(value) && strcmp(json_string_value(value), text) == 0;
}

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

static bool number_of(const json_t *value, uint32_t *token) {
  if (!json_is_integer(value) || json_integer_value(value) < 0 || json_integer_value(value) > 0x7ffffffe) return false;
  *token = (uint32_t)json_integer_value(value);
  return true;
}

bool tokenizer_word(const struct tokenizer *tokenizer, const char *word, size_t size, uint32_t *token) {
  char spelt[2 * 256 + 1];
  size_t length = 0;
  if (size > 256) return false; /* no token is as long */
  for (size_t i = 0; i < size; i++) length += spell((unsigned char)word[i], spelt + length);
  spelt[length] = '\0';
  return number_of(json_object_get(tokenizer->vocabulary, spelt), token);
}

/* ---- The model ---- */

static bool read_vocabulary(const struct reading *reading, const json_t *model) {
  struct tokenizer *tokenizer = reading->tokenizer;
  const char *text;
  json_t *value;
  tokenizer->vocabulary = json_object_get(model, "vocab");
  if (!json_is_object(tokenizer->vocabulary))
    return refuse(reading, "model.vocab", "this is no map of texts to numbers", other_cure);
  json_object_foreach((json_t *)(uintptr_t)tokenizer->vocabulary, text, value) {
    uint32_t token;
    if (!number_of(value, &token)) return refuse(reading, "model.vocab", "a token has no number from 0 on", other_cure);
    if (token >= tokenizer->tokens_end) tokenizer->tokens_end = token + 1;
  }
  for (int byte = 0; byte < 256; byte++) {
    char one = (char)byte;
    if (!tokenizer_word(tokenizer, &one, 1, &tokenizer->byte_tokens[byte]))
      return refuse(reading, "model.vocab", "a byte is no token, so not every text has tokens", other_cure);
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
  const json_t *merges = json_object_get(model, "merges");
  char left[MOST_BYTES], right[MOST_BYTES], joined[2 * MOST_BYTES];
  if (!json_is_array(merges)) return refuse(reading, "model.merges", "this is no list of merges", other_cure);
  size_t count = json_array_size(merges);
  tokenizer->bpe = bpe_new(count);
  if (tokenizer->bpe == NULL) return rt_problem(reading->problem, "%s: no memory for its merges", reading->path);
  for (size_t i = 0; i < count; i++) {
    uint32_t a, b, c;
    bool good = read_halves(json_array_get(merges, i), left, right);
    if (good) snprintf(joined, sizeof joined, "%s%s", left, right);
    if (!good || !number_of(json_object_get(tokenizer->vocabulary, left), &a) ||
        !number_of(json_object_get(tokenizer->vocabulary, right), &b) ||
        !number_of(json_object_get(tokenizer->vocabulary, joined), &c)) {
      rt_problem(reading->problem, "%s: model.merges: merge %zu does not join two tokens to one of the vocabulary",
                 reading->path, i);
      return rt_help(reading->problem, "the file was changed: fetch it again");
    }
    bpe_merge(tokenizer->bpe, a, b, c);
  }
  return true;
}

static bool read_model(const struct reading *reading) {
  static const char *const absent[] = {"dropout", "continuing_subword_prefix", "end_of_word_suffix", "byte_fallback"};
  const json_t *model = json_object_get(reading->tokenizer->root, "model"), *type = json_object_get(model, "type");
  bool untyped = type == NULL && json_object_get(model, "merges") != NULL;
  if (!untyped && !is_text(type, "BPE")) return refuse(reading, "model.type", "this is not BPE", other_cure);
  for (size_t i = 0; i < sizeof absent / sizeof *absent; i++)
    if (!is_nothing(json_object_get(model, absent[i]))) return refuse(reading, "model", absent[i], other_cure);
  reading->tokenizer->ignores_merges = json_is_true(json_object_get(model, "ignore_merges"));
  return read_vocabulary(reading, model) && read_merges(reading, model);
}

/* ---- What comes before it ---- */

static bool read_normalizer(const struct reading *reading, const json_t *normalizer) {
  if (is_nothing(normalizer)) return true;
  const json_t *type = json_object_get(normalizer, "type"), *list = json_object_get(normalizer, "normalizers");
  if (is_text(type, "NFC")) return reading->tokenizer->composes = true;
  if (!is_text(type, "Sequence") || !json_is_array(list))
    return refuse(reading, "normalizer", "this is not NFC, the one that is read", other_cure);
  for (size_t i = 0; i < json_array_size(list); i++)
    if (is_text(json_object_get(json_array_get(list, i), "type"), "Sequence") ||
        !read_normalizer(reading, json_array_get(list, i)))
      return refuse(reading, "normalizer", "this is not NFC, the one that is read", other_cure);
  return true;
}

static bool add_words(const struct reading *reading, const char *expression) {
  char error[192];
  if (splitter_add(&reading->tokenizer->splitter, expression, error, sizeof error)) return true;
  rt_problem(reading->problem, "%s: pre_tokenizer: '%.200s': %s", reading->path, expression, error);
  return rt_help(reading->problem, "%s", other_cure);
}

/* A text as an expression that matches nothing else. */
static bool add_text(const struct reading *reading, const char *text) {
  char expression[512] = "\\Q";
  if (strlen(text) > 400 || strstr(text, "\\E") != NULL)
    return refuse(reading, "pre_tokenizer", "this text to split at cannot be taken", other_cure);
  strcat(strcat(expression, text), "\\E");
  return add_words(reading, expression);
}

static bool read_split(const struct reading *reading, const json_t *split) {
  const json_t *pattern = json_object_get(split, "pattern");
  const json_t *regex = json_object_get(pattern, "Regex"), *text = json_object_get(pattern, "String");
  if (!is_text(json_object_get(split, "behavior"), "Isolated") || !is_nothing(json_object_get(split, "invert")))
    return refuse(reading, "pre_tokenizer", "a Split that is not Isolated, or is inverted", other_cure);
  if (json_is_string(regex)) return add_words(reading, json_string_value(regex));
  if (json_is_string(text)) return add_text(reading, json_string_value(text));
  return refuse(reading, "pre_tokenizer", "a Split without a pattern", other_cure);
}

static bool read_bytes(const struct reading *reading, const json_t *step, bool is_first) {
  const json_t *regex = json_object_get(step, "use_regex");
  reading->tokenizer->adds_space = json_is_true(json_object_get(step, "add_prefix_space"));
  if (reading->tokenizer->adds_space && !is_first)
    return refuse(reading, "pre_tokenizer", "add_prefix_space within the pieces of a Split", other_cure);
  return json_is_false(regex) || add_words(reading, gpt2_words);
}

static bool read_step(const struct reading *reading, const json_t *step, bool is_first, bool is_last) {
  const json_t *type = json_object_get(step, "type");
  if (is_last != is_text(type, "ByteLevel"))
    return refuse(reading, "pre_tokenizer", "the last step, and no other, must be ByteLevel", other_cure);
  if (is_last) return read_bytes(reading, step, is_first);
  if (is_text(type, "Split")) return read_split(reading, step);
  if (is_text(type, "Digits"))
    return add_words(reading, json_is_true(json_object_get(step, "individual_digits")) ? "\\p{N}" : "\\p{N}+");
  return refuse(reading, "pre_tokenizer", "a step that is not Split, Digits or ByteLevel", other_cure);
}

static bool read_pre_tokenizer(const struct reading *reading) {
  const json_t *first = json_object_get(reading->tokenizer->root, "pre_tokenizer");
  const json_t *list = json_object_get(first, "pretokenizers");
  if (!is_text(json_object_get(first, "type"), "Sequence")) return read_step(reading, first, true, true);
  size_t count = json_array_size(list);
  for (size_t i = 0; i < count; i++)
    if (!read_step(reading, json_array_get(list, i), i == 0, i + 1 == count)) return false;
  return count > 0 || refuse(reading, "pre_tokenizer", "a Sequence of nothing", other_cure);
}

/* ---- Added tokens ---- */

static bool read_added(const struct reading *reading, const json_t *value, struct added *added) {
  static const char *const absent[] = {"single_word", "lstrip", "rstrip"};
  struct tokenizer *tokenizer = reading->tokenizer;
  const json_t *text = json_object_get(value, "content");
  *added = (struct added){.text = json_string_value(text), .size = json_string_length(text)};
  if (added->size == 0 || !number_of(json_object_get(value, "id"), &added->token))
    return refuse(reading, "added_tokens", "a token without a text or a number", other_cure);
  for (size_t i = 0; i < sizeof absent / sizeof *absent; i++)
    if (!is_nothing(json_object_get(value, absent[i]))) return refuse(reading, "added_tokens", absent[i], other_cure);
  added->normalized = json_is_true(json_object_get(value, "normalized"));
  if (added->normalized && tokenizer->composes)
    return refuse(reading, "added_tokens", "a token that is looked for in the normal form", other_cure);
  tokenizer->begins_added[(unsigned char)added->text[0]] = true;
  if (added->token >= tokenizer->tokens_end) tokenizer->tokens_end = added->token + 1;
  return true;
}

static bool read_all_added(const struct reading *reading) {
  struct tokenizer *tokenizer = reading->tokenizer;
  const json_t *list = json_object_get(tokenizer->root, "added_tokens");
  tokenizer->added = calloc(json_array_size(list) + 1, sizeof *tokenizer->added);
  if (tokenizer->added == NULL) return rt_problem(reading->problem, "%s: no memory", reading->path);
  for (; tokenizer->n_added < json_array_size(list); tokenizer->n_added++)
    if (!read_added(reading, json_array_get(list, tokenizer->n_added), &tokenizer->added[tokenizer->n_added]))
      return false;
  return true;
}

/* ---- */

static bool read_all(const struct reading *reading, const char *text, size_t size) {
  struct tokenizer *tokenizer = reading->tokenizer;
  json_error_t error;
  tokenizer->root = json_loadb(text, size, 0, &error);
  if (tokenizer->root == NULL) {
    rt_problem(reading->problem, "%s:%d:%d: %s", reading->path, error.line, error.column, error.text);
    return rt_help(reading->problem, "give a tokenizer.json as the library tokenizers writes it");
  }
  if (!json_is_object(tokenizer->root)) return refuse(reading, "the file", "this is no tokenizer", other_cure);
  tokenizer->capacity = 64;
  tokenizer->cache = calloc(CACHED_WORDS, sizeof *tokenizer->cache);
  tokenizer->tokens = calloc(tokenizer->capacity, sizeof *tokenizer->tokens);
  if (tokenizer->cache == NULL || tokenizer->tokens == NULL)
    return rt_problem(reading->problem, "%s: no memory", reading->path);
  return read_model(reading) && read_normalizer(reading, json_object_get(tokenizer->root, "normalizer")) &&
         read_pre_tokenizer(reading) && read_all_added(reading);
}

struct tokenizer *tokenizer_read(const char *path, const char *text, size_t size, struct problem *problem) {
  struct tokenizer *tokenizer = calloc(1, sizeof *tokenizer);
  if (tokenizer == NULL) return rt_problem(problem, "%s: no memory", path), NULL;
  if (read_all(&(struct reading){tokenizer, path, problem}, text, size)) return tokenizer;
  tokenizer_free(tokenizer);
  return NULL;
}

void tokenizer_free(struct tokenizer *tokenizer) {
  if (tokenizer == NULL) return;
  splitter_free(&tokenizer->splitter);
  bpe_free(tokenizer->bpe);
  free(tokenizer->added);
  free(tokenizer->cache);
  free(tokenizer->tokens);
  json_decref(tokenizer->root);
  free(tokenizer);
}

uint32_t tokenizer_vocabulary(const struct tokenizer *tokenizer) {
  return tokenizer->tokens_end;
}

bool tokenizer_find(const struct tokenizer *tokenizer, const char *text, uint32_t *token) {
  for (size_t i = 0; i < tokenizer->n_added; i++)
    if (strcmp(tokenizer->added[i].text, text) == 0) return *token = tokenizer->added[i].token, true;
  return number_of(json_object_get(tokenizer->vocabulary, text), token);
}
