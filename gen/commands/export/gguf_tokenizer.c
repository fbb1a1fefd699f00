/* A tokenizer.json as metadata of GGUF. llama.cpp has the ways of byte-level BPE to divide texts by name; what divides
 * them in another way is refused, since it would give other tokens. */
#include <string.h>
#include <unistd.h>

#include "gen/base/file.h"
#include "gen/commands/export/gguf_keys.h"
#include "gen/commands/export/gguf_pieces.h"

/* A file of the folder; NULL where it has none, and with an error where it cannot be read. The largest length of
 * tokenizer_config.json is often a number that no integer holds. */
static json_t *load(const struct exported *of, const char *name, size_t flags) {
  const char *path = arena_printf(of->arena, "%s/%s", of->folder, name);
  json_error_t error;
  json_t *json = access(path, F_OK) == 0 ? json_load_file(path, JSON_REJECT_DUPLICATES | flags, &error) : NULL;
  if (json == NULL && access(path, F_OK) == 0)
    diag_error(of->diags, (struct location){.file = path, .line = error.line, .column = error.column}, "%s",
               error.text);
  return json;
}

/* ---- How texts are divided ---- */

#define WORDS(digits_)                                                                                                 \
  "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}" digits_                                          \
  "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"

/* What llama.cpp calls a list of patterns, each of which divides what the ones before it left. */
static const struct division {
  const char *name;
  bool ignores_merges;
  const char *patterns[3];
} divisions[] = {
    {"llama-bpe", true, {WORDS("{1,3}")}},
    {"qwen2", false, {WORDS("")}},
    {"deepseek-v3",
     false,
     {"\\p{N}{1,3}", "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+",
      "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+|"
      " ?[\\p{P}\\p{S}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"}},
};

/* Whether a pattern is a text in which the ends of lines are \r and \n, as files have it, or the characters. */
static bool is_pattern(const char *wanted, const char *text) {
  for (; *text != '\0'; text++) {
    const char ends = *text == '\r' ? 'r' : *text == '\n' ? 'n' : '\0';
    if (ends != '\0' && (wanted[0] != '\\' || wanted[1] != ends)) return false;
    if (ends == '\0' && *wanted != *text) return false;
    wanted += ends != '\0' ? 2 : 1;
  }
  return *wanted == '\0';
}

/* Whether the steps before the last one split by these patterns. */
static bool splits_by(const json_t *steps, const char *const patterns[3]) {
  const size_t count = json_array_size(steps) - 1;
  for (size_t i = 0; i < 3; i++) {
    const json_t *step = i < count ? json_array_get(steps, i) : NULL;
    if (step == NULL && patterns[i] == NULL) continue;
    if (step == NULL || patterns[i] == NULL || strcmp(tokenizer_text(step, "type"), "Split") != 0 ||
        strcmp(tokenizer_text(step, "behavior"), "Isolated") != 0 || json_is_true(json_object_get(step, "invert")) ||
        !is_pattern(patterns[i], tokenizer_text(json_object_get(step, "pattern"), "Regex")))
      return false;
  }
  return count <= 3;
}

static bool is_byte_level(const json_t *step, bool with_regex) {
  return strcmp(tokenizer_text(step, "type"), "ByteLevel") == 0 &&
         !json_is_true(json_object_get(step, "add_prefix_space")) &&
         json_is_false(json_object_get(step, "use_regex")) != with_regex;
}

/* What llama.cpp calls a way of a pre_tokenizer; NULL: it has none such. */
static const char *division_of(const json_t *pre, bool ignores_merges) {
  const json_t *steps = json_object_get(pre, "pretokenizers");
  const size_t count = json_array_size(steps);
  if (is_byte_level(pre, true) && !ignores_merges) return "gpt-2";
  if (strcmp(tokenizer_text(pre, "type"), "Sequence") != 0 || count < 2 ||
      !is_byte_level(json_array_get(steps, count - 1), false))
    return NULL;
  for (size_t i = 0; i < sizeof divisions / sizeof *divisions; i++)
    if (divisions[i].ignores_merges == ignores_merges && splits_by(steps, divisions[i].patterns))
      return divisions[i].name;
  return NULL;
}

/* ---- The template of chats ---- */

/* The one that tokenizer_config.json names "default", where it has several. */
static const json_t *default_template(const json_t *templates) {
  const json_t *one;
  size_t i;
  json_array_foreach(templates, i, one) {
    if (strcmp(tokenizer_text(one, "name"), "default") == 0) return json_object_get(one, "template");
  }
  return NULL;
}

static bool add_chat_template(const struct exported *of, const json_t *config, struct gguf_metadata *metadata) {
  size_t length;
  const char *text = read_bytes(of->arena, arena_printf(of->arena, "%s/chat_template.jinja", of->folder), &length);
  const json_t *found = json_object_get(config, "chat_template");
  if (json_is_array(found)) found = default_template(found);
  if (text == NULL && found == NULL && json_object_get(config, "chat_template") != NULL)
    return tokenizer_fail(of, "tokenizer_config.json", "'chat_template' has none of the name 'default'",
                          "GGUF has one template; name it 'default', or write it to chat_template.jinja");
  if (text == NULL && found != NULL && !json_is_null(found) && !json_is_string(found))
    return tokenizer_fail(of, "tokenizer_config.json", "'chat_template' is no text", NULL);
  if (text == NULL) text = json_string_value(found);
  if (text != NULL && text[0] != '\0') gguf_add_text(metadata, "tokenizer.chat_template", text);
  return true;
}

/* ---- All of it ---- */

static bool is_set(const json_t *value) {
  return json_is_true(value) || (json_is_number(value) && json_number_value(value) != 0) ||
         (json_is_string(value) && json_string_length(value) > 0);
}

static bool check_model(const struct exported *of, const json_t *model) {
  static const char *const keys[] = {"dropout", "end_of_word_suffix", "continuing_subword_prefix"};
  if (strcmp(tokenizer_text(model, "type"), "BPE") != 0)
    return tokenizer_fail(of, "tokenizer.json", "only a BPE is exported, of bytes or of SentencePiece's pieces",
                          "llama.cpp's convert_hf_to_gguf.py takes other tokenizers");
  for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
    if (is_set(json_object_get(model, keys[i])))
      return tokenizer_fail(
          of, "tokenizer.json",
          arena_printf(of->arena, "the model has '%s', which a file of GGUF cannot represent", keys[i]), NULL);
  return true;
}

static bool check_normalizer(const struct exported *of, const json_t *normalizer) {
  if (!json_is_object(normalizer)) return true;
  if (strcmp(tokenizer_text(normalizer, "type"), "NFC") != 0)
    return tokenizer_fail(of, "tokenizer.json", "'normalizer' changes texts, and llama.cpp takes them as they are",
                          NULL);
  diag_warning(of->diags, (struct location){.file = arena_printf(of->arena, "%s/tokenizer.json", of->folder)},
               "llama.cpp does not normalize texts to NFC, as this tokenizer does");
  diag_help(of->diags, "give it texts in NFC, as most are");
  return true;
}

static bool add_bytes(const struct exported *of, json_t *tokenizer, struct vocabulary *vocabulary,
                      struct gguf_metadata *metadata) {
  const json_t *model = json_object_get(tokenizer, "model"), *merges = json_object_get(model, "merges");
  const bool ignores = json_is_true(json_object_get(model, "ignore_merges"));
  const char *division = division_of(json_object_get(tokenizer, "pre_tokenizer"), ignores), **pairs;
  if (division == NULL)
    return tokenizer_fail(of, "tokenizer.json", "'pre_tokenizer' divides texts in a way that is not known of llama.cpp",
                          "those of GPT-2, Llama 3, Qwen 2 and DeepSeek-V3 are");
  if (!check_normalizer(of, json_object_get(tokenizer, "normalizer"))) return false;
  if (!vocabulary_read(of, tokenizer, vocabulary) || !vocabulary_merges(of, merges, &pairs)) return false;
  gguf_add_text(metadata, "tokenizer.ggml.model", "gpt2");
  gguf_add_text(metadata, "tokenizer.ggml.pre", division);
  gguf_add_texts(metadata, "tokenizer.ggml.tokens", vocabulary->texts, vocabulary->count);
  gguf_add_int32s(metadata, "tokenizer.ggml.token_type", vocabulary->types, vocabulary->count);
  gguf_add_texts(metadata, "tokenizer.ggml.merges", pairs, json_array_size(merges));
  return true;
}

static bool add_all(const struct exported *of, json_t *tokenizer, const json_t *config, struct vocabulary *vocabulary,
                    struct gguf_metadata *metadata) {
  return check_model(of, json_object_get(tokenizer, "model")) &&
         (gguf_has_pieces(tokenizer) ? gguf_add_pieces : add_bytes)(of, tokenizer, vocabulary, metadata) &&
         vocabulary_add_specials(of, tokenizer, config, vocabulary, metadata) &&
         add_chat_template(of, config, metadata);
}

bool gguf_add_tokenizer(struct exported *of, struct gguf_metadata *metadata, bool *strips) {
  const int before = of->diags->errors;
  json_t *tokenizer = load(of, "tokenizer.json", 0);
  json_t *config = load(of, "tokenizer_config.json", JSON_DECODE_INT_AS_REAL);
  if (tokenizer == NULL && of->diags->errors == before)
    tokenizer_fail(of, "tokenizer.json", "there is no such file",
                   "llama.cpp needs the model's tokenizer in the file; GGUF is written from the fast tokenizer's");
  struct vocabulary vocabulary = {.numbers = json_object()};
  if (of->diags->errors == before) add_all(of, tokenizer, config, &vocabulary, metadata);
  *strips = vocabulary.strips;
  json_decref(vocabulary.numbers);
  json_decref(tokenizer);
  json_decref(config);
  return of->diags->errors == before;
}
