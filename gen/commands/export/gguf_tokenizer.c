/* A tokenizer.json of byte-level BPE as metadata of GGUF. llama.cpp has the ways to divide texts by name; what divides
 * them in another way is refused, since it would give other tokens. */
#include <string.h>
#include <unistd.h>

#include "gen/base/file.h"
#include "gen/commands/export/gguf_keys.h"

enum token_type { TOKEN_NORMAL = 1, TOKEN_CONTROL = 3, TOKEN_OWN = 4, TOKEN_UNUSED = 5 };

struct vocabulary {
  const char **texts;
  int32_t *types;
  uint64_t count;
};

static bool fail(const struct exported *of, const char *file, const char *why, const char *help) {
  diag_error(of->diags, (struct location){.file = arena_printf(of->arena, "%s/%s", of->folder, file)}, "%s", why);
  if (help != NULL) diag_help(of->diags, "%s", help);
  return false;
}

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

static const char *text_at(const json_t *object, const char *key) {
  const char *text = json_string_value(json_object_get(object, key));
  return text != NULL ? text : "";
}

/* ---- How texts are divided ---- */

#define WORDS                                                                                                          \
  "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}%s| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|"                \
  "\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"

/* What llama.cpp calls a way of a pre_tokenizer; NULL: it has none such. */
static const char *division_of(const struct exported *of, const json_t *pre, bool ignores_merges) {
  const json_t *steps = json_object_get(pre, "pretokenizers"), *first = json_array_get(steps, 0);
  const json_t *bytes = json_array_size(steps) == 2 ? json_array_get(steps, 1) : pre;
  if (strcmp(text_at(bytes, "type"), "ByteLevel") != 0 || json_is_true(json_object_get(bytes, "add_prefix_space")))
    return NULL;
  if (bytes == pre) return !ignores_merges && !json_is_false(json_object_get(pre, "use_regex")) ? "gpt-2" : NULL;
  const char *pattern = text_at(json_object_get(first, "pattern"), "Regex");
  if (strcmp(text_at(pre, "type"), "Sequence") != 0 || strcmp(text_at(first, "type"), "Split") != 0 ||
      strcmp(text_at(first, "behavior"), "Isolated") != 0 || json_is_true(json_object_get(first, "invert")) ||
      !json_is_false(json_object_get(bytes, "use_regex")))
    return NULL;
  if (ignores_merges) return strcmp(pattern, arena_printf(of->arena, WORDS, "{1,3}")) == 0 ? "llama-bpe" : NULL;
  return strcmp(pattern, arena_printf(of->arena, WORDS, "")) == 0 ? "qwen2" : NULL;
}

/* ---- Tokens ---- */

static bool take(const struct exported *of, struct vocabulary *vocabulary, const char *text, const json_t *number,
                 enum token_type type) {
  const json_int_t at = json_is_integer(number) ? json_integer_value(number) : -1;
  if (text == NULL || at < 0 || (uint64_t)at >= vocabulary->count)
    return fail(of, "tokenizer.json",
                arena_printf(of->arena, "token '%s' is not one of the model's %llu", text != NULL ? text : "",
                             (unsigned long long)vocabulary->count),
                "give the tokenizer that the model was trained with");
  if (vocabulary->texts[at] != NULL && strcmp(vocabulary->texts[at], text) != 0)
    return fail(of, "tokenizer.json",
                arena_printf(of->arena, "tokens '%s' and '%s' have the same number", text, vocabulary->texts[at]),
                NULL);
  vocabulary->texts[at] = arena_string(of->arena, text);
  vocabulary->types[at] = (int32_t)type;
  return true;
}

static bool read_vocabulary(const struct exported *of, json_t *tokenizer, struct vocabulary *vocabulary) {
  struct model_value size;
  const char *text;
  json_t *number, *added;
  size_t i;
  if (!exported_number(of, "vocab_size", &size) || size.number < 1 || size.number > 1 << 28)
    return fail(of, "config.json", "'vocab_size' is missing", NULL);
  vocabulary->count = (uint64_t)size.number;
  vocabulary->texts = arena_alloc(of->arena, vocabulary->count * sizeof *vocabulary->texts);
  vocabulary->types = arena_alloc(of->arena, vocabulary->count * sizeof *vocabulary->types);
  json_object_foreach(json_object_get(json_object_get(tokenizer, "model"), "vocab"), text, number) {
    if (!take(of, vocabulary, text, number, TOKEN_NORMAL)) return false;
  }
  json_array_foreach(json_object_get(tokenizer, "added_tokens"), i, added) {
    const bool special = json_is_true(json_object_get(added, "special"));
    if (!take(of, vocabulary, json_string_value(json_object_get(added, "content")), json_object_get(added, "id"),
              special ? TOKEN_CONTROL : TOKEN_OWN))
      return false;
  }
  for (uint64_t k = 0; k < vocabulary->count; k++) {
    if (vocabulary->texts[k] != NULL) continue;
    vocabulary->texts[k] = arena_printf(of->arena, "[PAD%llu]", (unsigned long long)k);
    vocabulary->types[k] = TOKEN_UNUSED;
  }
  return true;
}

/* "a b" of each merge, which newer files have as ["a", "b"]. */
static bool add_merges(const struct exported *of, const json_t *merges, struct gguf_metadata *metadata) {
  const size_t count = json_array_size(merges);
  const char **texts = arena_alloc(of->arena, (count + 1) * sizeof *texts);
  for (size_t i = 0; i < count; i++) {
    const json_t *merge = json_array_get(merges, i);
    const char *left = json_string_value(json_array_get(merge, 0)),
               *right = json_string_value(json_array_get(merge, 1));
    texts[i] = json_is_string(merge)           ? arena_string(of->arena, json_string_value(merge))
               : left != NULL && right != NULL ? arena_printf(of->arena, "%s %s", left, right)
                                               : NULL;
    if (texts[i] == NULL || strchr(texts[i], ' ') == NULL)
      return fail(of, "tokenizer.json", arena_printf(of->arena, "merge %zu is not a pair of texts", i), NULL);
  }
  if (count == 0) return fail(of, "tokenizer.json", "the model has no merges", NULL);
  gguf_add_texts(metadata, "tokenizer.ggml.merges", texts, count);
  return true;
}

/* ---- Special tokens ---- */

static int64_t number_of(const struct vocabulary *vocabulary, const char *text) {
  for (uint64_t i = 0; i < vocabulary->count; i++)
    if (strcmp(vocabulary->texts[i], text) == 0) return (int64_t)i;
  return -1;
}

/* The token that tokenizer_config.json names, else the number that config.json has. */
static int64_t special(const struct exported *of, const json_t *config, const char *kind,
                       const struct vocabulary *vocabulary) {
  const json_t *named = json_object_get(config, arena_printf(of->arena, "%s_token", kind));
  const json_t *number = json_object_get(of->published, arena_printf(of->arena, "%s_token_id", kind));
  const char *text = json_is_object(named) ? text_at(named, "content") : json_string_value(named);
  const json_int_t at = json_is_integer(number) ? json_integer_value(number) : -1;
  if (text != NULL) return number_of(vocabulary, text);
  return at >= 0 && (uint64_t)at < vocabulary->count ? at : -1;
}

/* Which tokens a text gets around it: whether a template has one before the text's own, or after it. */
static bool read_template(const json_t *processor, const char *first, const char *last, bool *begins, bool *ends) {
  const json_t *single = json_object_get(processor, "single");
  const size_t count = json_array_size(single);
  size_t text = count;
  for (size_t i = 0; i < count; i++)
    if (json_object_get(json_array_get(single, i), "Sequence") != NULL) text = i;
  if (text > 1 || count > text + 2 || text == count) return false;
  const char *before = text_at(json_object_get(json_array_get(single, 0), "SpecialToken"), "id");
  const char *after = text_at(json_object_get(json_array_get(single, text + 1), "SpecialToken"), "id");
  *begins = text == 1;
  *ends = count == text + 2;
  return (!*begins || (first != NULL && strcmp(before, first) == 0)) &&
         (!*ends || (last != NULL && strcmp(after, last) == 0));
}

static bool read_processor(const json_t *processor, const char *first, const char *last, bool *begins, bool *ends) {
  const json_t *steps = json_object_get(processor, "processors"), *step;
  const char *type = text_at(processor, "type");
  bool all = true;
  size_t i;
  if (processor == NULL || json_is_null(processor) || strcmp(type, "ByteLevel") == 0) return true;
  if (strcmp(type, "TemplateProcessing") == 0) return read_template(processor, first, last, begins, ends);
  json_array_foreach(steps, i, step) all &= read_processor(step, first, last, begins, ends);
  return all && strcmp(type, "Sequence") == 0;
}

static bool add_specials(const struct exported *of, const json_t *tokenizer, const json_t *config,
                         const struct vocabulary *vocabulary, struct gguf_metadata *metadata) {
  static const char *const kinds[] = {"bos", "eos", "unk", "pad"};
  static const char *const keys[] = {"bos", "eos", "unknown", "padding"};
  int64_t numbers[4];
  bool begins = false, ends = false;
  for (int i = 0; i < 4; i++) {
    numbers[i] = special(of, config, kinds[i], vocabulary);
    if (numbers[i] >= 0)
      gguf_add_uint32(metadata, arena_printf(of->arena, "tokenizer.ggml.%s_token_id", keys[i]), (uint32_t)numbers[i]);
  }
  const char *first = numbers[0] >= 0 ? vocabulary->texts[numbers[0]] : NULL;
  const char *last = numbers[1] >= 0 ? vocabulary->texts[numbers[1]] : NULL;
  if (!read_processor(json_object_get(tokenizer, "post_processor"), first, last, &begins, &ends))
    return fail(of, "tokenizer.json", "'post_processor' adds other tokens than bos before a text and eos after it",
                "GGUF has only these two");
  gguf_add_bool(metadata, "tokenizer.ggml.add_bos_token", begins);
  gguf_add_bool(metadata, "tokenizer.ggml.add_eos_token", ends);
  return true;
}

static void add_chat_template(const struct exported *of, const json_t *config, struct gguf_metadata *metadata) {
  size_t length;
  const char *text = read_bytes(of->arena, arena_printf(of->arena, "%s/chat_template.jinja", of->folder), &length);
  if (text == NULL) text = json_string_value(json_object_get(config, "chat_template"));
  if (text != NULL) gguf_add_text(metadata, "tokenizer.chat_template", text);
}

/* ---- All of it ---- */

static bool add_all(const struct exported *of, json_t *tokenizer, const json_t *config,
                    struct gguf_metadata *metadata) {
  struct vocabulary vocabulary;
  const json_t *model = json_object_get(tokenizer, "model"), *normalizer = json_object_get(tokenizer, "normalizer");
  const bool ignores = json_is_true(json_object_get(model, "ignore_merges"));
  const char *division = division_of(of, json_object_get(tokenizer, "pre_tokenizer"), ignores);
  if (strcmp(text_at(model, "type"), "BPE") != 0 || json_is_true(json_object_get(model, "byte_fallback")))
    return fail(of, "tokenizer.json", "only a byte-level BPE is exported",
                "llama.cpp's convert_hf_to_gguf.py takes other tokenizers");
  if (division == NULL)
    return fail(of, "tokenizer.json", "'pre_tokenizer' divides texts in a way that is not known of llama.cpp",
                "those of GPT-2, Llama 3 and Qwen 2 are");
  if (json_is_object(normalizer) && strcmp(text_at(normalizer, "type"), "NFC") != 0)
    return fail(of, "tokenizer.json", "'normalizer' changes texts, and llama.cpp takes them as they are", NULL);
  if (json_is_object(normalizer)) {
    diag_warning(of->diags, (struct location){.file = arena_printf(of->arena, "%s/tokenizer.json", of->folder)},
                 "llama.cpp does not normalize texts to NFC, as this tokenizer does");
    diag_help(of->diags, "give it texts in NFC, as most are");
  }
  if (!read_vocabulary(of, tokenizer, &vocabulary)) return false;
  gguf_add_text(metadata, "tokenizer.ggml.model", "gpt2");
  gguf_add_text(metadata, "tokenizer.ggml.pre", division);
  gguf_add_texts(metadata, "tokenizer.ggml.tokens", vocabulary.texts, vocabulary.count);
  gguf_add_int32s(metadata, "tokenizer.ggml.token_type", vocabulary.types, vocabulary.count);
  if (!add_merges(of, json_object_get(model, "merges"), metadata)) return false;
  if (!add_specials(of, tokenizer, config, &vocabulary, metadata)) return false;
  add_chat_template(of, config, metadata);
  return true;
}

bool gguf_add_tokenizer(struct exported *of, struct gguf_metadata *metadata) {
  const int before = of->diags->errors;
  json_t *tokenizer = load(of, "tokenizer.json", 0);
  json_t *config = load(of, "tokenizer_config.json", JSON_DECODE_INT_AS_REAL);
  if (tokenizer == NULL && of->diags->errors == before)
    fail(of, "tokenizer.json", "there is no such file",
         "llama.cpp needs the model's tokenizer in the file; GGUF is written from the fast tokenizer's");
  if (of->diags->errors == before) add_all(of, tokenizer, config, metadata);
  json_decref(tokenizer);
  json_decref(config);
  return of->diags->errors == before;
}
