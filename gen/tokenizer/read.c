/* tokenizer.json, as the library tokenizers writes it (tokenizers/src/tokenizer/serialization.rs): what of it is read,
 * and what is refused. Truncation, padding and the post-processor concern requests to a model, not a corpus: they are
 * left out. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <stdlib.h>
#include <string.h>

#include "gen/tokenizer/reading.h"
#include "gen/tokenizer/tokenizer.h"

bool reading_refuse(const struct reading *reading, const char *key, const char *what) {
  rt_problem(reading->problem, "%s: %s: %s", reading->path, key, what);
  return rt_help(reading->problem, "make the tokens with the library tokenizers, and give them as format npy_tokens");
}

bool reading_no_memory(const struct reading *reading) {
  return rt_problem(reading->problem, "%s: no memory for this tokenizer", reading->path);
}

bool json_is_nothing(const json_t *value) {
  return value == NULL || json_is_null(value) || json_is_false(value) ||
         (json_is_number(value) && json_number_value(value) == 0) ||
         (json_is_string(value) && json_string_length(value) == 0);
}

bool json_is_text(const json_t *value, const char *text) {
  return json_is_string(value) && strcmp(json_string_value(value), text) == 0;
}

bool json_token(const json_t *value, uint32_t *token) {
  if (!json_is_integer(value) || json_integer_value(value) < 0 || json_integer_value(value) > 0x7ffffffe) return false;
  *token = (uint32_t)json_integer_value(value);
  return true;
}

/* ---- The model ---- */

/* Files of before 0.9 name no type: a model with merges is BPE. */
static bool read_model(const struct reading *reading) {
  static const struct model *const models[] = {&model_bpe, &model_unigram, &model_word_level, &model_word_piece};
  const json_t *model = json_object_get(reading->tokenizer->root, "model"), *type = json_object_get(model, "type");
  for (size_t i = 0; i < sizeof models / sizeof *models; i++)
    if (json_is_text(type, models[i]->type)) reading->tokenizer->model = models[i];
  if (type == NULL && json_object_get(model, "merges") != NULL) reading->tokenizer->model = &model_bpe;
  if (reading->tokenizer->model == NULL)
    return reading_refuse(reading, "model.type", "this is not BPE, Unigram, WordLevel or WordPiece");
  if (reading->tokenizer->maps_bytes && reading->tokenizer->model != &model_bpe)
    return reading_refuse(reading, "model.type", "this is not BPE, the model that ByteLevel is read with");
  return reading->tokenizer->model->read(reading, model);
}

/* ---- Added tokens ---- */

/* The normal form of a token that is looked for in normal forms. */
static bool normalize_added(const struct reading *reading, struct added *added) {
  if (!added->normalized || reading->tokenizer->normalizers.count == 0) return true;
  if (!normalize(&reading->tokenizer->normalizers, added->text, added->size, &added->form))
    return reading_no_memory(reading);
  added->text = added->form.text;
  added->size = added->form.size;
  return added->size > 0 || reading_refuse(reading, "added_tokens", "a token of which normalization leaves nothing");
}

static bool begins_white(const struct added *added) {
  size_t length;
  return is_white_space(character_at(added->text, added->size, &length));
}

static bool read_added(const struct reading *reading, const json_t *value, struct added *added) {
  struct tokenizer *tokenizer = reading->tokenizer;
  const json_t *text = json_object_get(value, "content");
  *added = (struct added){.text = json_string_value(text),
                          .size = json_string_length(text),
                          .normalized = json_is_true(json_object_get(value, "normalized")),
                          .single_word = json_is_true(json_object_get(value, "single_word")),
                          .strips_left = json_is_true(json_object_get(value, "lstrip")),
                          .strips_right = json_is_true(json_object_get(value, "rstrip"))};
  if (added->size == 0 || !json_token(json_object_get(value, "id"), &added->token))
    return reading_refuse(reading, "added_tokens", "a token without a text or a number");
  if (!normalize_added(reading, added)) return false;
  tokenizer->begins_added[(unsigned char)added->text[0]] = true;
  if (added->token >= tokenizer->tokens_end) tokenizer->tokens_end = added->token + 1;
  return true;
}

/* Expressions for tokens that must not be next to a word. */
static bool compile_words(const struct reading *reading) {
  char error[192];
  struct tokenizer *tokenizer = reading->tokenizer;
  tokenizer->word_end = split_compile("[\\w\\x{200c}\\x{200d}]\\z", error, sizeof error);
  tokenizer->word_begin = split_compile("\\A[\\w\\x{200c}\\x{200d}]", error, sizeof error);
  return (tokenizer->word_end != NULL && tokenizer->word_begin != NULL) || reading_no_memory(reading);
}

static bool read_all_added(const struct reading *reading) {
  struct tokenizer *tokenizer = reading->tokenizer;
  const json_t *list = json_object_get(tokenizer->root, "added_tokens");
  bool strips_right = false, white = false, single = false;
  tokenizer->added = calloc(json_array_size(list) + 1, sizeof *tokenizer->added);
  if (tokenizer->added == NULL) return reading_no_memory(reading);
  while (tokenizer->n_added < json_array_size(list)) {
    struct added *added = &tokenizer->added[tokenizer->n_added];
    if (!read_added(reading, json_array_get(list, tokenizer->n_added++), added)) return false;
    strips_right |= added->strips_right;
    white |= begins_white(added);
    single |= added->single_word;
  }
  if (strips_right && white)
    return reading_refuse(reading, "added_tokens", "rstrip next to a token that begins with white space");
  return !single || compile_words(reading);
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
  if (!json_is_object(tokenizer->root)) return reading_refuse(reading, "the file", "this is not a tokenizer");
  return read_normalizer(reading, json_object_get(tokenizer->root, "normalizer")) &&
         read_pre_tokenizer(reading, json_object_get(tokenizer->root, "pre_tokenizer")) && read_model(reading) &&
         read_all_added(reading);
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
  for (size_t i = 0; i < tokenizer->n_added; i++) bytes_free(&tokenizer->added[i].form);
  normalizers_free(&tokenizer->normalizers);
  splitter_free(&tokenizer->splitter);
  model_free(&tokenizer->data);
  trie_free(tokenizer->vocabulary);
  pcre2_code_free(tokenizer->word_end);
  pcre2_code_free(tokenizer->word_begin);
  free(tokenizer->added);
  free(tokenizer->sizes);
  json_decref(tokenizer->root);
  free(tokenizer);
}

uint32_t tokenizer_vocabulary(const struct tokenizer *tokenizer) {
  return tokenizer->tokens_end;
}

bool tokenizer_find(const struct tokenizer *tokenizer, const char *text, uint32_t *token) {
  const json_t *list = json_object_get(tokenizer->root, "added_tokens");
  for (size_t i = 0; i < tokenizer->n_added; i++)
    if (json_is_text(json_object_get(json_array_get(list, i), "content"), text))
      return *token = tokenizer->added[i].token, true;
  return trie_find(tokenizer->vocabulary, text, strlen(text), token);
}
