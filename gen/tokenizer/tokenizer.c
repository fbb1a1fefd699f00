#define PCRE2_CODE_UNIT_WIDTH 8
#include "gen/tokenizer/tokenizer.h"

#include <pcre2.h>
#include <stdlib.h>
#include <string.h>

#include "gen/tokenizer/parts.h"

/* ---- Words ---- */

struct encoder *encoder_new(const struct tokenizer *tokenizer) {
  struct encoder *encoder = calloc(1, sizeof *encoder);
  if (encoder == NULL) return NULL;
  encoder->tokenizer = tokenizer;
  encoder->cache = calloc(CACHED_WORDS, sizeof *encoder->cache);
  encoder->match = pcre2_match_data_create(1, NULL);
  if (encoder->cache != NULL && encoder->match != NULL && encoder_reserve(encoder, 64)) return encoder;
  encoder_free(encoder);
  return NULL;
}

void encoder_free(struct encoder *encoder) {
  if (encoder == NULL) return;
  bpe_scratch_free(&encoder->bpe);
  pcre2_match_data_free(encoder->match);
  free(encoder->cache);
  free(encoder->tokens);
  free(encoder->paths);
  free(encoder);
}

bool encoder_reserve(struct encoder *encoder, size_t count) {
  if (count <= encoder->capacity) return true;
  uint32_t *grown = realloc(encoder->tokens, count * sizeof *grown);
  if (grown == NULL) return false;
  encoder->tokens = grown;
  encoder->capacity = count;
  return true;
}

/* The tokens of a word that was met before, of which there are many in a text: the last one of each slot. */
static struct cached *cached_word(struct encoder *encoder, const char *word, size_t size) {
  uint64_t hash = UINT64_C(0xcbf29ce484222325); /* FNV-1a */
  for (size_t i = 0; i < size; i++) hash = (hash ^ (unsigned char)word[i]) * UINT64_C(0x100000001b3);
  return &encoder->cache[(hash ^ hash >> 32) % CACHED_WORDS];
}

/* The tokens of a word, in encoder->tokens. */
static enum word_result encode_word(struct encoder *encoder, const char *word, size_t size, size_t *count) {
  if (size > CACHED_BYTES) return encoder->tokenizer->model->encode(encoder, word, size, count);
  struct cached *cached = cached_word(encoder, word, size);
  if (cached->size == size && memcmp(cached->word, word, size) == 0) {
    *count = cached->count;
    memcpy(encoder->tokens, cached->tokens, *count * sizeof *cached->tokens);
    return WORD_ENCODED;
  }
  enum word_result result = encoder->tokenizer->model->encode(encoder, word, size, count);
  if (result != WORD_ENCODED) return result;
  cached->size = (uint8_t)size;
  cached->count = (uint8_t)*count;
  memcpy(cached->word, word, size);
  memcpy(cached->tokens, encoder->tokens, *count * sizeof *cached->tokens);
  return WORD_ENCODED;
}

/* ---- Added tokens ---- */

/* The longest added token of a kind at the beginning of a text; NULL: none. */
static const struct added *added_at(const struct tokenizer *tokenizer, bool normalized, const char *text, size_t size) {
  const struct added *best = NULL;
  if (!tokenizer->begins_added[(unsigned char)text[0]]) return NULL;
  for (size_t i = 0; i < tokenizer->n_added; i++) {
    const struct added *added = &tokenizer->added[i];
    if (added->normalized == normalized && added->size <= size && memcmp(added->text, text, added->size) == 0 &&
        (best == NULL || added->size > best->size))
      best = added;
  }
  return best;
}

static bool is_match(const void *code, const char *text, size_t size) {
  pcre2_match_data *match = pcre2_match_data_create(1, NULL);
  bool found = match != NULL && pcre2_match(code, (PCRE2_SPTR)text, size, 0, PCRE2_NO_UTF_CHECK, match, NULL) >= 0;
  pcre2_match_data_free(match);
  return found;
}

/* The bytes of the last character of a text. */
static size_t last_character(const char *text, size_t size) {
  size_t length = 1;
  while (length < size && ((unsigned char)text[size - length] & 0xc0) == 0x80) length++;
  return length;
}

/* Whether a word ends before `from` or begins at `to`. */
static bool touches_word(const struct tokenizer *tokenizer, const char *text, size_t size, size_t from, size_t to) {
  size_t before = from > 0 ? last_character(text, from) : 0, length = 0;
  if (to < size) character_at(text + to, size - to, &length);
  return (before > 0 && is_match(tokenizer->word_end, text + from - before, before)) ||
         (length > 0 && is_match(tokenizer->word_begin, text + to, length));
}

/* The first added token of a kind from `at` on, which is the end of one before it or the beginning of a text. */
static struct added_match find_added(const struct tokenizer *tokenizer, bool normalized, const char *text, size_t size,
                                     size_t at) {
  size_t length;
  for (size_t from = at; from < size;) {
    const struct added *added = added_at(tokenizer, normalized, text + from, size - from);
    if (added == NULL) {
      from++;
      continue;
    }
    size_t to = from + added->size;
    if (added->single_word && touches_word(tokenizer, text, size, from, to)) {
      from = to;
      continue;
    }
    while (added->strips_left && from > at &&
           is_white_space(character_at(text + from - last_character(text, from), size, &length)))
      from -= last_character(text, from);
    while (added->strips_right && to < size && is_white_space(character_at(text + to, size - to, &length)))
      to += length;
    return (struct added_match){added, from, to};
  }
  return (struct added_match){NULL, size, size};
}

static size_t emit_added(struct encoder *encoder, const struct added_match *match) {
  encoder->tokens[0] = match->added->token;
  return 1;
}

/* ---- A text ---- */

bool encoding_begin(struct encoding *encoding, struct encoder *encoder, const char *path, const char *text, size_t size,
                    struct problem *problem) {
  *encoding = (struct encoding){.encoder = encoder, .path = path, .text = text, .size = size};
  size_t at;
  if (is_utf8(text, size, &at)) return true;
  rt_problem(problem, "%s: byte %zu: this is not UTF-8", path, at);
  return rt_help(problem, "convert the file to UTF-8");
}

bool encoding_mark(struct encoding *encoding, const struct text_range *ranges, size_t count) {
  return marking_begin(&encoding->marking, ranges, count);
}

const uint8_t *encoding_marks(const struct encoding *encoding) {
  return encoding->marking.marks;
}

void encoding_seek(struct encoding *encoding, size_t at, size_t inside) {
  encoding->at = at;
  encoding->inside = inside;
}

static bool no_memory(struct problem *problem, const char *path) {
  return rt_problem(problem, "%s: no memory for its text", path);
}

/* ---- Segments: what is between the added tokens of a normal form ---- */

/* The segment with its prefix, and with the mark of blanks. */
static void edit_segment(const struct prefix *prefix, const char *text, size_t size, bool is_first,
                         struct bytes *edited) {
  size_t blank = prefix->blank != NULL ? strlen(prefix->blank) : 0;
  bool begins = size >= prefix->size && prefix->text != NULL && memcmp(text, prefix->text, prefix->size) == 0;
  begins |= blank > 0 && text[0] == ' ';
  if (prefix->text != NULL && !begins && (is_first || !prefix->only_first))
    bytes_add(edited, prefix->text, prefix->size);
  for (size_t at = 0, end; at < size; at = end) {
    const char *found = blank > 0 ? memchr(text + at, ' ', size - at) : NULL;
    end = found != NULL ? (size_t)(found - text) : size;
    bytes_add(edited, text + at, end - at);
    if (found == NULL) break;
    bytes_add(edited, prefix->blank, blank);
    end++;
  }
}

static bool open_segment(struct encoding *encoding, size_t end, struct problem *problem) {
  const struct tokenizer *tokenizer = encoding->encoder->tokenizer;
  const char *text = encoding->form + encoding->form_at;
  size_t size = end - encoding->form_at;
  const struct prefix *prefix = &tokenizer->prefix;
  bool edits = (prefix->text != NULL || prefix->blank != NULL) && prefix->level == 0 && size > 0;
  if (edits) {
    edit_segment(prefix, text, size, encoding->at == 0 && encoding->form_at == 0, &encoding->own_segment);
    if (encoding->own_segment.failed) return no_memory(problem, encoding->path);
    text = encoding->own_segment.text;
    size = encoding->own_segment.size;
  }
  size_t done = encoding->skipped < size ? encoding->skipped : size;
  encoding->skipped -= done;
  encoding->segment_size = size;
  marking_segment(&encoding->marking, edits ? prefix : NULL, encoding->form, encoding->form_at, end, size);
  encoding->form_at = end;
  splitting_begin(&encoding->splitting, &tokenizer->splitter, encoding->encoder->match, text, size, done);
  encoding->has_segment = true;
  return true;
}

static void close_segment(struct encoding *encoding) {
  bytes_free(&encoding->own_segment);
  encoding->before += encoding->segment_size;
  encoding->has_segment = false;
}

/* The word with what is put before the pieces of a split. False without memory. */
static bool edit_word(struct encoding *encoding, size_t from, const char **word, size_t *size) {
  const struct prefix *prefix = &encoding->encoder->tokenizer->prefix;
  if (prefix->text == NULL || prefix->level == 0 || encoding->splitting.levels[prefix->level].from != from ||
      (*size >= prefix->size && memcmp(*word, prefix->text, prefix->size) == 0))
    return true;
  encoding->word.size = 0;
  bytes_add(&encoding->word, prefix->text, prefix->size);
  bytes_add(&encoding->word, *word, *size);
  *word = encoding->word.text;
  *size = encoding->word.size;
  return !encoding->word.failed;
}

/* The tokens of the next word of the segment; *count is 0 at its end. */
static bool next_word(struct encoding *encoding, size_t *count, struct problem *problem) {
  size_t from, to;
  *count = 0;
  if (!splitting_next(&encoding->splitting, &from, &to)) return true;
  const char *word = encoding->splitting.text + from;
  size_t size = to - from;
  enum word_result result = WORD_NO_MEMORY;
  if (edit_word(encoding, from, &word, &size)) result = encode_word(encoding->encoder, word, size, count);
  struct marking *marking = &encoding->marking;
  if (result == WORD_ENCODED && marking->marks != NULL &&
      !marking_word(marking, encoding->encoder, from, to, size - (to - from), *count))
    result = WORD_NO_MEMORY;
  encoding->inside = encoding->before + encoding->splitting.done;
  if (result == WORD_ENCODED) return true;
  if (result == WORD_NO_MEMORY) return no_memory(problem, encoding->path);
  rt_problem(problem, "%s: no token encodes a part of '%.*s', and the tokenizer has none for what is unknown",
             encoding->path, (int)(size < 80 ? size : 80), word);
  return rt_help(problem, "give a tokenizer with an unknown token, or a text of its language");
}

/* ---- Parts: what is between the added tokens of a text ---- */

static bool open_part(struct encoding *encoding, size_t end, struct problem *problem) {
  const struct tokenizer *tokenizer = encoding->encoder->tokenizer;
  encoding->form = encoding->text + encoding->at;
  encoding->form_size = end - encoding->at;
  if (tokenizer->normalizers.count > 0) {
    if (!normalize(&tokenizer->normalizers, encoding->form, encoding->form_size, &encoding->own_form))
      return no_memory(problem, encoding->path);
    encoding->form = encoding->own_form.text;
    encoding->form_size = encoding->own_form.size;
  }
  if (!marking_part(&encoding->marking, &tokenizer->normalizers, encoding->text, encoding->at, end,
                    encoding->form_size))
    return no_memory(problem, encoding->path);
  encoding->form_at = encoding->before = 0;
  encoding->skipped = encoding->inside;
  encoding->knows_form_next = false;
  encoding->has_part = true;
  return true;
}

static void close_part(struct encoding *encoding) {
  bytes_free(&encoding->own_form);
  encoding->has_part = false;
  encoding->at = encoding->next.from;
  encoding->inside = 0;
}

/* The next tokens of the part; *count is 0 at its end. */
static bool next_of_part(struct encoding *encoding, size_t *count, struct problem *problem) {
  for (;;) {
    *count = 0;
    if (encoding->has_segment) {
      if (!next_word(encoding, count, problem)) return false;
      if (*count > 0) return true;
      if (encoding->splitting.levels[0].at < encoding->segment_size) continue;
      close_segment(encoding);
    }
    if (encoding->form_at >= encoding->form_size) return true;
    if (!encoding->knows_form_next)
      encoding->form_next =
          find_added(encoding->encoder->tokenizer, true, encoding->form, encoding->form_size, encoding->form_at);
    const struct added_match *next = &encoding->form_next;
    encoding->knows_form_next = true;
    if (encoding->form_at < next->from) {
      if (!open_segment(encoding, next->from, problem)) return false;
      continue;
    }
    size_t size = next->to - next->from;
    encoding->knows_form_next = false;
    encoding->form_at = next->to;
    encoding->before += size;
    if (encoding->skipped >= size) {
      encoding->skipped -= size;
      continue;
    }
    encoding->inside = encoding->before;
    if (encoding->marking.marks != NULL) marking_added(&encoding->marking, true, next->from, next->to);
    *count = emit_added(encoding->encoder, next);
    return true;
  }
}

bool encoding_next(struct encoding *encoding, const uint32_t **tokens, size_t *count, struct problem *problem) {
  struct encoder *encoder = encoding->encoder;
  *count = 0;
  while (encoding->has_part || encoding->at < encoding->size) {
    if (!encoding->has_part && (!encoding->knows_next || encoding->next.from < encoding->at)) {
      encoding->next = find_added(encoder->tokenizer, false, encoding->text, encoding->size, encoding->at);
      encoding->knows_next = true;
    }
    if (!encoding->has_part && encoding->next.from == encoding->at) {
      encoding->at = encoding->next.to;
      encoding->knows_next = false;
      if (encoding->marking.marks != NULL)
        marking_added(&encoding->marking, false, encoding->next.from, encoding->next.to);
      *count = emit_added(encoder, &encoding->next);
      break;
    }
    if (!encoding->has_part && !open_part(encoding, encoding->next.from, problem)) return false;
    if (!next_of_part(encoding, count, problem)) return false;
    if (*count > 0) break;
    close_part(encoding);
  }
  *tokens = encoder->tokens;
  return true;
}

bool encoding_may_stop(const struct encoding *encoding) {
  return !encoding->has_segment || splitting_may_stop(&encoding->splitting);
}

void encoding_end(struct encoding *encoding) {
  bytes_free(&encoding->own_form);
  bytes_free(&encoding->own_segment);
  bytes_free(&encoding->word);
  marking_end(&encoding->marking);
  *encoding = (struct encoding){0};
}
