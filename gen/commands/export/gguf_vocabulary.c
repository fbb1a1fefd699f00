/* The vocabulary of a tokenizer.json as metadata of GGUF: tokens, merges, special tokens. */
#include "gen/commands/export/gguf_vocabulary.h"

#include <string.h>

/* ---- Tokens ---- */

bool tokenizer_fail(const struct exported *of, const char *file, const char *why, const char *help) {
  diag_error(of->diags, (struct location){.file = arena_printf(of->arena, "%s/%s", of->folder, file)}, "%s", why);
  if (help != NULL) diag_help(of->diags, "%s", help);
  return false;
}

const char *tokenizer_text(const json_t *object, const char *key) {
  const char *text = json_string_value(json_object_get(object, key));
  return text != NULL ? text : "";
}

int64_t vocabulary_find(const struct vocabulary *vocabulary, const char *text, size_t length) {
  const json_t *number = json_object_getn(vocabulary->numbers, text, length);
  return number != NULL ? (int64_t)json_integer_value(number) : -1;
}

static int64_t number_of(const struct vocabulary *vocabulary, const char *text) {
  return vocabulary_find(vocabulary, text, strlen(text));
}

static bool take(const struct exported *of, struct vocabulary *vocabulary, const char *text, const json_t *number,
                 enum token_type type) {
  const json_int_t at = json_is_integer(number) ? json_integer_value(number) : -1;
  if (text == NULL || at < 0 || (uint64_t)at >= vocabulary->count)
    return tokenizer_fail(of, "tokenizer.json",
                          arena_printf(of->arena, "token '%s' is not one of the model's %llu", text != NULL ? text : "",
                                       (unsigned long long)vocabulary->count),
                          "give the tokenizer that the model was trained with");
  if (number_of(vocabulary, text) >= 0 && number_of(vocabulary, text) != at)
    return tokenizer_fail(of, "tokenizer.json",
                          arena_printf(of->arena, "token '%s' has the numbers %lld and %lld", text,
                                       (long long)number_of(vocabulary, text), (long long)at),
                          "llama.cpp finds a token by its text");
  if (vocabulary->texts[at] != NULL && strcmp(vocabulary->texts[at], text) != 0)
    return tokenizer_fail(
        of, "tokenizer.json",
        arena_printf(of->arena, "tokens '%s' and '%s' have the same number", text, vocabulary->texts[at]), NULL);
  json_object_set_new(vocabulary->numbers, text, json_integer(at));
  vocabulary->texts[at] = arena_string(of->arena, text);
  vocabulary->types[at] = (int32_t)type;
  return true;
}

static bool take_added(const struct exported *of, struct vocabulary *vocabulary, const json_t *added) {
  return take(of, vocabulary, json_string_value(json_object_get(added, "content")), json_object_get(added, "id"),
              json_is_true(json_object_get(added, "special")) ? TOKEN_CONTROL : TOKEN_OWN);
}

/* The tokens that llama.cpp looks up where the model's name has "phi-3": blanks after the first three stay, and those
 * after all other added ones are stripped. */
static const char *const of_phi3[] = {"<unk>", "<s>", "<|endoftext|>", "</s>"};

/* Whether all added tokens have `rstrip` as llama.cpp takes them for Phi 3. */
static bool strip_as_phi3(const json_t *tokens) {
  const json_t *token;
  size_t i;
  json_array_foreach(tokens, i, token) {
    bool kept = false;
    for (size_t k = 0; k < 3; k++) kept |= strcmp(tokenizer_text(token, "content"), of_phi3[k]) == 0;
    if (json_is_true(json_object_get(token, "rstrip")) == kept) return false;
  }
  return true;
}

/* The first token with a property; NULL: none has it. */
static const char *token_with(const json_t *tokens, const char *key) {
  const json_t *token;
  size_t i;
  json_array_foreach(tokens, i, token) {
    if (json_is_true(json_object_get(token, key))) return tokenizer_text(token, "content");
  }
  return NULL;
}

/* llama.cpp takes an added token wherever its text is, and leaves the blanks around it, but for those of Phi 3. */
static bool check_added(const struct exported *of, const json_t *tokens, struct vocabulary *vocabulary) {
  static const char *const keys[] = {"lstrip", "single_word", "rstrip"};
  for (size_t i = 0; i < 3; i++) {
    const char *text = token_with(tokens, keys[i]), *help = NULL;
    if (text == NULL) continue;
    vocabulary->strips = i == 2 && strip_as_phi3(tokens);
    if (vocabulary->strips) continue;
    if (i == 2)
      help =
          "llama.cpp strips blanks after all added tokens but <unk>, <s> and <|endoftext|>, as Phi 3's tokenizers do, "
          "or after none";
    return tokenizer_fail(
        of, "tokenizer.json",
        arena_printf(of->arena, "added token '%s' has '%s', which a file of GGUF cannot represent", text, keys[i]),
        help);
  }
  return true;
}

/* Without one of them llama.cpp does not open the file. */
static bool check_phi3(const struct exported *of, const struct vocabulary *vocabulary) {
  for (size_t i = 0; i < sizeof of_phi3 / sizeof *of_phi3; i++)
    if (number_of(vocabulary, of_phi3[i]) < 0)
      return tokenizer_fail(
          of, "tokenizer.json",
          arena_printf(of->arena, "added tokens have 'rstrip', and there is no token '%s'", of_phi3[i]),
          "llama.cpp strips blanks in the vocabulary of Phi 3 alone, which has <unk>, <s>, </s> and <|endoftext|>");
  diag_warning(of->diags, (struct location){.file = arena_printf(of->arena, "%s/tokenizer.json", of->folder)},
               "llama.cpp strips ASCII's blanks after an added token, and this tokenizer all of Unicode's");
  return true;
}

/* Numbers without a token get a text of their own. */
static bool fill(const struct exported *of, struct vocabulary *vocabulary) {
  for (uint64_t i = 0; i < vocabulary->count; i++) {
    if (vocabulary->texts[i] != NULL) continue;
    json_t *number = json_integer((json_int_t)i);
    const bool taken =
        take(of, vocabulary, arena_printf(of->arena, "[PAD%llu]", (unsigned long long)i), number, TOKEN_UNUSED);
    json_decref(number);
    if (!taken) return false;
  }
  return true;
}

bool vocabulary_read(const struct exported *of, json_t *tokenizer, struct vocabulary *vocabulary) {
  struct model_value size;
  const char *text;
  json_t *number, *added;
  size_t i;
  if (!exported_number(of, "vocab_size", &size) || size.number < 1 || size.number > 1 << 28)
    return tokenizer_fail(of, "config.json", "'vocab_size' is missing", NULL);
  vocabulary->count = (uint64_t)size.number;
  vocabulary->texts = arena_alloc(of->arena, vocabulary->count * sizeof *vocabulary->texts);
  vocabulary->types = arena_alloc(of->arena, vocabulary->count * sizeof *vocabulary->types);
  json_object_foreach(json_object_get(json_object_get(tokenizer, "model"), "vocab"), text, number) {
    if (!take(of, vocabulary, text, number, TOKEN_NORMAL)) return false;
  }
  if (!check_added(of, json_object_get(tokenizer, "added_tokens"), vocabulary)) return false;
  json_array_foreach(json_object_get(tokenizer, "added_tokens"), i, added) {
    if (!take_added(of, vocabulary, added)) return false;
  }
  if (vocabulary->strips && !check_phi3(of, vocabulary)) return false;
  return fill(of, vocabulary);
}

/* Newer files have ["a", "b"] for "a b". */
bool vocabulary_merges(const struct exported *of, const json_t *merges, const char ***pairs) {
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
      return tokenizer_fail(of, "tokenizer.json", arena_printf(of->arena, "merge %zu is not a pair of texts", i), NULL);
  }
  *pairs = texts;
  return count > 0 || tokenizer_fail(of, "tokenizer.json", "the model has no merges", NULL);
}

/* ---- Special tokens ---- */

/* The token that tokenizer_config.json names, else the number that config.json has, of several the first; -1: none.
 * False with an error where the vocabulary has no such token. */
static bool special(const struct exported *of, const json_t *config, const char *kind,
                    const struct vocabulary *vocabulary, int64_t *at) {
  const char *key = arena_printf(of->arena, "%s_token", kind);
  const json_t *named = json_object_get(config, key);
  const json_t *number = json_object_get(of->published, arena_printf(of->arena, "%s_id", key));
  const char *text = json_is_object(named) ? tokenizer_text(named, "content") : json_string_value(named);
  if (json_is_array(number)) number = json_array_get(number, 0);
  *at = text != NULL ? number_of(vocabulary, text) : json_is_integer(number) ? json_integer_value(number) : -1;
  if (text != NULL && *at < 0)
    return tokenizer_fail(of, "tokenizer_config.json",
                          arena_printf(of->arena, "'%s' is '%s', which is no token of the vocabulary", key, text),
                          NULL);
  if (*at >= (int64_t)vocabulary->count)
    return tokenizer_fail(of, "config.json",
                          arena_printf(of->arena, "'%s_id' is %lld, and the vocabulary has %llu tokens", key,
                                       (long long)*at, (unsigned long long)vocabulary->count),
                          NULL);
  return true;
}

/* Which tokens a text gets around it: whether a template has one before the text's own, or after it. */
static bool read_template(const json_t *processor, const char *first, const char *last, bool *begins, bool *ends) {
  const json_t *single = json_object_get(processor, "single");
  const size_t count = json_array_size(single);
  size_t text = count;
  for (size_t i = 0; i < count; i++)
    if (json_object_get(json_array_get(single, i), "Sequence") != NULL) text = i;
  if (text > 1 || count > text + 2 || text == count) return false;
  const char *before = tokenizer_text(json_object_get(json_array_get(single, 0), "SpecialToken"), "id");
  const char *after = tokenizer_text(json_object_get(json_array_get(single, text + 1), "SpecialToken"), "id");
  *begins = text == 1;
  *ends = count == text + 2;
  return (!*begins || (first != NULL && strcmp(before, first) == 0)) &&
         (!*ends || (last != NULL && strcmp(after, last) == 0));
}

static bool read_processor(const json_t *processor, const char *first, const char *last, bool *begins, bool *ends) {
  const json_t *steps = json_object_get(processor, "processors"), *step;
  const char *type = tokenizer_text(processor, "type");
  bool all = true;
  size_t i;
  if (processor == NULL || json_is_null(processor) || strcmp(type, "ByteLevel") == 0) return true;
  if (strcmp(type, "TemplateProcessing") == 0) return read_template(processor, first, last, begins, ends);
  json_array_foreach(steps, i, step) all &= read_processor(step, first, last, begins, ends);
  return all && strcmp(type, "Sequence") == 0;
}

bool vocabulary_add_specials(const struct exported *of, const json_t *tokenizer, const json_t *config,
                             const struct vocabulary *vocabulary, struct gguf_metadata *metadata) {
  static const char *const kinds[] = {"bos", "eos", "unk", "pad"};
  static const char *const keys[] = {"bos", "eos", "unknown", "padding"};
  int64_t numbers[4];
  bool begins = false, ends = false;
  for (int i = 0; i < 4; i++) {
    if (!special(of, config, kinds[i], vocabulary, &numbers[i])) return false;
    if (numbers[i] >= 0)
      gguf_add_uint32(metadata, arena_printf(of->arena, "tokenizer.ggml.%s_token_id", keys[i]), (uint32_t)numbers[i]);
  }
  const char *first = numbers[0] >= 0 ? vocabulary->texts[numbers[0]] : NULL;
  const char *last = numbers[1] >= 0 ? vocabulary->texts[numbers[1]] : NULL;
  if (!read_processor(json_object_get(tokenizer, "post_processor"), first, last, &begins, &ends))
    return tokenizer_fail(of, "tokenizer.json",
                          "'post_processor' adds other tokens than bos before a text and eos after it",
                          "GGUF has only these two");
  gguf_add_bool(metadata, "tokenizer.ggml.add_bos_token", begins);
  gguf_add_bool(metadata, "tokenizer.ggml.add_eos_token", ends);
  return true;
}
