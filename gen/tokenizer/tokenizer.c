#include "gen/tokenizer/tokenizer.h"

#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "gen/tokenizer/parts.h"

/* ---- Words ---- */

/* The tokens of a word that was met before, of which there are many in a text: the last one of each slot. */
static struct cached *cached_word(struct tokenizer *tokenizer, const char *word, size_t size) {
  uint64_t hash = UINT64_C(0xcbf29ce484222325); /* FNV-1a */
  for (size_t i = 0; i < size; i++) hash = (hash ^ (unsigned char)word[i]) * UINT64_C(0x100000001b3);
  return &tokenizer->cache[(hash ^ hash >> 32) % CACHED_WORDS];
}

static bool grow(struct tokenizer *tokenizer, size_t size) {
  if (size <= tokenizer->capacity) return true;
  uint32_t *grown = realloc(tokenizer->tokens, size * sizeof *grown);
  if (grown == NULL) return false;
  tokenizer->tokens = grown;
  tokenizer->capacity = size;
  return true;
}

/* The tokens of a word, in tokenizer->tokens. */
static bool encode_word(struct tokenizer *tokenizer, const char *word, size_t size, size_t *count) {
  struct cached *cached = cached_word(tokenizer, word, size);
  if (size <= CACHED_BYTES && cached->size == size && memcmp(cached->word, word, size) == 0) {
    *count = cached->count;
    memcpy(tokenizer->tokens, cached->tokens, *count * sizeof *cached->tokens);
    return true;
  }
  if (!grow(tokenizer, size)) return false;
  *count = size;
  for (size_t i = 0; i < size; i++) tokenizer->tokens[i] = tokenizer->byte_tokens[(unsigned char)word[i]];
  uint32_t whole;
  if (tokenizer->ignores_merges && tokenizer_word(tokenizer, word, size, &whole))
    tokenizer->tokens[0] = whole, *count = 1;
  else if (!bpe_join(tokenizer->bpe, tokenizer->tokens, count))
    return false;
  if (size > CACHED_BYTES) return true;
  cached->size = (uint8_t)size;
  cached->count = (uint8_t)*count;
  memcpy(cached->word, word, size);
  memcpy(cached->tokens, tokenizer->tokens, *count * sizeof *cached->tokens);
  return true;
}

/* ---- Added tokens ---- */

/* The first added token of a kind in text[from … to - 1], the longest that begins there; NULL: none, *at is `to`. */
static const struct added *find_added(const struct tokenizer *tokenizer, bool normalized, const char *text, size_t from,
                                      size_t to, size_t *at) {
  for (*at = from; *at < to; ++*at) {
    const struct added *best = NULL;
    if (!tokenizer->begins_added[(unsigned char)text[*at]]) continue;
    for (size_t i = 0; i < tokenizer->n_added; i++) {
      const struct added *added = &tokenizer->added[i];
      if (added->normalized == normalized && added->size <= to - *at &&
          memcmp(added->text, text + *at, added->size) == 0 && (best == NULL || added->size > best->size))
        best = added;
    }
    if (best != NULL) return best;
  }
  return NULL;
}

/* The added token at the encoding's position, or NULL and in *end where the next one begins. Those that are found
 * before a text is brought to its normal form come first. */
static const struct added *next_added(struct encoding *encoding, size_t *end) {
  const struct tokenizer *tokenizer = encoding->tokenizer;
  size_t at;
  if (!encoding->knows_stop || encoding->stop < encoding->at) {
    find_added(tokenizer, false, encoding->text, encoding->at, encoding->size, &encoding->stop);
    encoding->knows_stop = true;
  }
  const struct added *added = NULL;
  if (encoding->stop == encoding->at)
    added = find_added(tokenizer, false, encoding->text, encoding->at, encoding->size, &at);
  else
    added = find_added(tokenizer, true, encoding->text, encoding->at, encoding->stop, &at);
  if (added != NULL && at == encoding->at) return added;
  *end = at;
  return NULL;
}

/* ---- A text ---- */

bool encoding_begin(struct encoding *encoding, struct tokenizer *tokenizer, const char *path, const char *text,
                    size_t size, struct problem *problem) {
  *encoding = (struct encoding){.tokenizer = tokenizer, .path = path, .text = text, .size = size};
  for (size_t at = 0; at < size;) {
    utf8proc_int32_t code;
    utf8proc_ssize_t left = (utf8proc_ssize_t)(size - at < 4 ? size - at : 4);
    utf8proc_ssize_t length = utf8proc_iterate((const utf8proc_uint8_t *)text + at, left, &code);
    if (length <= 0) {
      rt_problem(problem, "%s: byte %zu: this is not UTF-8", path, at);
      return rt_help(problem, "convert the file to UTF-8");
    }
    at += (size_t)length;
  }
  return true;
}

void encoding_seek(struct encoding *encoding, size_t at, size_t inside) {
  encoding->at = at;
  encoding->inside = inside;
}

static bool no_memory(struct problem *problem, const char *path) {
  return rt_problem(problem, "%s: no memory for its text", path);
}

/* The part of the text up to `end` in its normal form, on which words are cut. */
static bool open_part(struct encoding *encoding, size_t end, struct problem *problem) {
  const struct tokenizer *tokenizer = encoding->tokenizer;
  const char *text = encoding->text + encoding->at, *part = text;
  size_t size = end - encoding->at;
  encoding->end = end;
  if (tokenizer->composes) {
    utf8proc_uint8_t *form = NULL;
    utf8proc_ssize_t length =
        utf8proc_map((const utf8proc_uint8_t *)text, (utf8proc_ssize_t)size, &form, UTF8PROC_STABLE | UTF8PROC_COMPOSE);
    if (length < 0) return no_memory(problem, encoding->path);
    part = encoding->part = (char *)form;
    size = (size_t)length;
  }
  if (tokenizer->adds_space && size > 0 && part[0] != ' ') {
    char *spaced = malloc(size + 1);
    if (spaced == NULL) return no_memory(problem, encoding->path);
    spaced[0] = ' ';
    memcpy(spaced + 1, part, size++);
    free(encoding->part);
    part = encoding->part = spaced;
  }
  splitting_begin(&encoding->splitting, part, size, encoding->inside);
  encoding->has_part = true;
  return true;
}

static void close_part(struct encoding *encoding) {
  free(encoding->part);
  encoding->part = NULL;
  encoding->has_part = false;
  encoding->at = encoding->end;
  encoding->inside = 0;
}

bool encoding_next(struct encoding *encoding, const uint32_t **tokens, size_t *count, struct problem *problem) {
  struct tokenizer *tokenizer = encoding->tokenizer;
  size_t from, to, end;
  *tokens = tokenizer->tokens;
  for (*count = 0; encoding->at < encoding->size;) {
    if (!encoding->has_part) {
      const struct added *added = next_added(encoding, &end);
      if (added != NULL) {
        encoding->at += added->size;
        tokenizer->tokens[0] = added->token;
        *count = 1;
        return true;
      }
      if (!open_part(encoding, end, problem)) return false;
    }
    if (splitting_next(&encoding->splitting, &tokenizer->splitter, &from, &to)) {
      if (!encode_word(tokenizer, encoding->splitting.text + from, to - from, count))
        return no_memory(problem, encoding->path);
      encoding->inside = encoding->splitting.done;
      *tokens = tokenizer->tokens;
      return true;
    }
    close_part(encoding);
  }
  return true;
}

bool encoding_may_stop(const struct encoding *encoding) {
  return !encoding->has_part || encoding->splitting.done == encoding->splitting.at;
}

void encoding_end(struct encoding *encoding) {
  free(encoding->part);
  *encoding = (struct encoding){0};
}
