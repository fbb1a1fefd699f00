#include "gen/commands/export/gguf_pieces.h"

#include <string.h>

#define BLANK "\xe2\x96\x81" /* U+2581 */

bool gguf_has_pieces(const json_t *tokenizer) {
  const json_t *model = json_object_get(tokenizer, "model");
  return strcmp(tokenizer_text(model, "type"), "BPE") == 0 && json_is_true(json_object_get(model, "byte_fallback"));
}

/* ---- How texts are changed ---- */

enum prefix { NEVER, ALWAYS, WHERE_MISSING, NOT_KNOWN };

static bool writes_blanks(const json_t *step) {
  return strcmp(tokenizer_text(step, "type"), "Replace") == 0 && strcmp(tokenizer_text(step, "content"), BLANK) == 0 &&
         strcmp(tokenizer_text(json_object_get(step, "pattern"), "String"), " ") == 0;
}

/* Where blanks are written when texts are divided. */
static enum prefix prefix_of_division(const json_t *pre) {
  const char *scheme = tokenizer_text(pre, "prepend_scheme");
  if (strcmp(tokenizer_text(pre, "type"), "Metaspace") != 0 || strcmp(tokenizer_text(pre, "replacement"), BLANK) != 0 ||
      !json_is_false(json_object_get(pre, "split")))
    return NOT_KNOWN;
  return strcmp(scheme, "never") == 0 ? NEVER : WHERE_MISSING;
}

static enum prefix prefix_of(const json_t *tokenizer) {
  const json_t *normalizer = json_object_get(tokenizer, "normalizer"),
               *pre = json_object_get(tokenizer, "pre_tokenizer");
  const json_t *steps = json_object_get(normalizer, "normalizers"), *first = json_array_get(steps, 0);
  /* After the normalizer no text has a blank any more. */
  const bool whole =
      !json_is_object(pre) || (strcmp(tokenizer_text(pre, "type"), "Split") == 0 &&
                               strcmp(tokenizer_text(json_object_get(pre, "pattern"), "String"), " ") == 0);
  if (!json_is_object(normalizer)) return prefix_of_division(pre);
  if (whole && writes_blanks(normalizer)) return NEVER;
  return whole && json_array_size(steps) == 2 && writes_blanks(json_array_get(steps, 1)) &&
                 strcmp(tokenizer_text(first, "type"), "Prepend") == 0 &&
                 strcmp(tokenizer_text(first, "prepend"), BLANK) == 0
             ? ALWAYS
             : NOT_KNOWN;
}

static bool add_prefix(const struct exported *of, const json_t *tokenizer, struct gguf_metadata *metadata) {
  const enum prefix prefix = prefix_of(tokenizer);
  if (prefix == NOT_KNOWN)
    return tokenizer_fail(of, "tokenizer.json",
                          "'normalizer' and 'pre_tokenizer' change or divide texts in a way that llama.cpp has not",
                          "it has those of Llama 2, Mistral and Gemma, which write blanks as U+2581");
  if (prefix == WHERE_MISSING) {
    diag_warning(of->diags, (struct location){.file = arena_printf(of->arena, "%s/tokenizer.json", of->folder)},
                 "llama.cpp puts a blank before a text that begins with one, and after each special token");
    diag_help(of->diags, "this tokenizer does not; other texts give the same tokens");
  }
  gguf_add_bool(metadata, "tokenizer.ggml.add_space_prefix", prefix != NEVER);
  return true;
}

/* ---- Bytes ---- */

static bool find_bytes(const struct exported *of, struct vocabulary *vocabulary) {
  for (unsigned byte = 0; byte < 256; byte++) {
    const char *text = arena_printf(of->arena, "<0x%02X>", byte);
    const int64_t at = vocabulary_find(vocabulary, text, strlen(text));
    if (at < 0)
      return tokenizer_fail(of, "tokenizer.json", arena_printf(of->arena, "the model has no token '%s'", text),
                            "it falls back to bytes, and needs all 256 of them");
    vocabulary->types[at] = TOKEN_BYTE;
  }
  return true;
}

/* ---- Scores ---- */

struct products {
  int *pairs;    /* of each token: how many give it */
  float *scores; /* of each token; 0: no pair gives it */
  int64_t last;  /* the token that the newest pair gives */
  int count;
};

/* Whether neighbours can be this token: special ones are found in a text before others are joined. */
static bool is_joined(const struct vocabulary *vocabulary, int64_t token) {
  return token >= 0 && (vocabulary->types[token] == TOKEN_NORMAL || vocabulary->types[token] == TOKEN_OWN);
}

static bool add_pair(const struct exported *of, const struct vocabulary *vocabulary, const char *pair,
                     struct products *to) {
  const char *blank = strchr(pair, ' ');
  const size_t left = (size_t)(blank - pair), right = strlen(blank + 1);
  char *text = arena_copy(of->arena, pair, left + right + 1);
  memcpy(text + left, blank + 1, right + 1);
  const int64_t product = vocabulary_find(vocabulary, text, left + right);
  if (product < 0)
    return tokenizer_fail(of, "tokenizer.json", arena_printf(of->arena, "merge '%s' gives no token", pair), NULL);
  if (product != to->last && to->scores[product] != 0)
    return tokenizer_fail(of, "tokenizer.json",
                          arena_printf(of->arena, "merges that give token '%s' have others between them", text),
                          "llama.cpp has one score for a token");
  if (product != to->last) to->scores[product] = -(float)++to->count;
  to->last = product;
  to->pairs[product] += is_joined(vocabulary, vocabulary_find(vocabulary, pair, left)) &&
                        is_joined(vocabulary, vocabulary_find(vocabulary, blank + 1, right));
  return true;
}

/* The lengths that texts of tokens have, from the shortest on. A text is looked at where the two parts have such
 * lengths alone: there are few, and a huge text is nowhere near two others. */
struct lengths {
  size_t *items;
  int count, capacity;
  bool *has; /* by length, up to the longest */
};

static struct lengths lengths_of(struct arena *arena, const struct vocabulary *vocabulary) {
  struct lengths lengths = {0};
  size_t longest = 0;
  for (uint64_t i = 0; i < vocabulary->count; i++)
    if (strlen(vocabulary->texts[i]) > longest) longest = strlen(vocabulary->texts[i]);
  lengths.has = arena_alloc(arena, longest + 1);
  for (uint64_t i = 0; i < vocabulary->count; i++) lengths.has[strlen(vocabulary->texts[i])] = true;
  for (size_t i = 1; i <= longest; i++)
    if (lengths.has[i]) ARENA_PUSH(arena, lengths, i);
  return lengths;
}

/* How many pairs of tokens a text is. */
static int pairs_of(const struct vocabulary *vocabulary, const struct lengths *lengths, const char *text) {
  const size_t length = strlen(text);
  int pairs = 0;
  for (int i = 0; i < lengths->count && lengths->items[i] < length; i++) {
    const size_t left = lengths->items[i];
    pairs += lengths->has[length - left] && ((unsigned char)text[left] & 0xC0) != 0x80 &&
             is_joined(vocabulary, vocabulary_find(vocabulary, text, left)) &&
             is_joined(vocabulary, vocabulary_find(vocabulary, text + left, length - left));
  }
  return pairs;
}

/* llama.cpp joins any two neighbours that are a token together. */
static bool check_pairs(const struct exported *of, const struct vocabulary *vocabulary,
                        const struct products *products) {
  const struct lengths lengths = lengths_of(of->arena, vocabulary);
  for (uint64_t i = 0; i < vocabulary->count; i++) {
    const int pairs = vocabulary->types[i] == TOKEN_NORMAL ? pairs_of(vocabulary, &lengths, vocabulary->texts[i]) : 0;
    if (vocabulary->types[i] == TOKEN_NORMAL && products->pairs[i] != pairs)
      return tokenizer_fail(of, "tokenizer.json",
                            arena_printf(of->arena, "token '%s' is %d pairs of tokens, and %d merges give it",
                                         vocabulary->texts[i], pairs, products->pairs[i]),
                            "llama.cpp joins all pairs, as SentencePiece does");
  }
  return true;
}

static bool add_scores(const struct exported *of, const json_t *merges, const struct vocabulary *vocabulary,
                       struct gguf_metadata *metadata) {
  struct products products = {.last = -1};
  const char **pairs;
  const size_t count = json_array_size(merges);
  products.pairs = arena_alloc(of->arena, vocabulary->count * sizeof *products.pairs);
  products.scores = arena_alloc(of->arena, vocabulary->count * sizeof *products.scores);
  if (!vocabulary_merges(of, merges, &pairs)) return false;
  for (size_t i = 0; i < count; i++)
    if (!add_pair(of, vocabulary, pairs[i], &products)) return false;
  if (!check_pairs(of, vocabulary, &products)) return false;
  for (uint64_t i = 0; i < vocabulary->count; i++)
    if (products.scores[i] == 0) products.scores[i] = -(float)(products.count + 1);
  gguf_add_float32s(metadata, "tokenizer.ggml.scores", products.scores, vocabulary->count);
  return true;
}

bool gguf_add_pieces(const struct exported *of, json_t *tokenizer, struct vocabulary *vocabulary,
                     struct gguf_metadata *metadata) {
  const json_t *model = json_object_get(tokenizer, "model");
  if (json_is_true(json_object_get(model, "ignore_merges")))
    return tokenizer_fail(of, "tokenizer.json", "the model has 'ignore_merges' with 'byte_fallback'",
                          "llama.cpp has these for tokenizers of different kinds");
  if (!vocabulary_read(of, tokenizer, vocabulary) || !find_bytes(of, vocabulary)) return false;
  gguf_add_text(metadata, "tokenizer.ggml.model", "llama");
  gguf_add_text(metadata, "tokenizer.ggml.pre", "default");
  gguf_add_texts(metadata, "tokenizer.ggml.tokens", vocabulary->texts, vocabulary->count);
  gguf_add_int32s(metadata, "tokenizer.ggml.token_type", vocabulary->types, vocabulary->count);
  return add_scores(of, json_object_get(model, "merges"), vocabulary, metadata) && add_prefix(of, tokenizer, metadata);
}
