#include "gen/tokenizer/marks.h"

#include <stdlib.h>
#include <string.h>

#include "gen/tokenizer/bytes.h"
#include "gen/tokenizer/parts.h"
#include "gen/tokenizer/tokenizer.h"

/* ---- The bytes of the text that a token stands for ---- */

static uint32_t size_of(const struct tokenizer *tokenizer, const char *spelling, size_t size) {
  uint32_t characters = 0;
  for (size_t i = 0; i < size; i++) characters += ((unsigned char)spelling[i] & 0xc0) != 0x80;
  return tokenizer->maps_bytes ? characters : (uint32_t)size;
}

/* Without what the spelling has in addition to the text: WordPiece's prefix, BPE's suffix of a word's end. */
static void note_size(struct tokenizer *tokenizer, json_int_t token, const char *spelling, size_t size) {
  const char *prefix = tokenizer->data.prefix != NULL ? tokenizer->data.prefix : "";
  const char *suffix = tokenizer->data.suffix != NULL ? tokenizer->data.suffix : "";
  const size_t before = strlen(prefix), after = strlen(suffix);
  if (size > before && memcmp(spelling, prefix, before) == 0) {
    spelling += before;
    size -= before;
  }
  if (size > after && memcmp(spelling + size - after, suffix, after) == 0) size -= after;
  if (token >= 0 && token < (json_int_t)tokenizer->tokens_end)
    tokenizer->sizes[token] = size_of(tokenizer, spelling, size);
}

bool tokenizer_measure(struct tokenizer *tokenizer) {
  const json_t *vocabulary = json_object_get(json_object_get(tokenizer->root, "model"), "vocab");
  const char *spelling;
  json_t *value;
  size_t i, length;
  tokenizer->sizes = calloc((size_t)tokenizer->tokens_end + 1, sizeof *tokenizer->sizes);
  if (tokenizer->sizes == NULL) return false;
  json_object_keylen_foreach((json_t *)vocabulary, spelling, length, value)
      note_size(tokenizer, json_integer_value(value), spelling, length);
  json_array_foreach(vocabulary, i, value) {
    const json_t *text = json_array_get(value, 0);
    note_size(tokenizer, (json_int_t)i, json_string_value(text), json_string_length(text));
  }
  const struct model_data *data = &tokenizer->data;
  for (int byte = 0; data->falls_back && byte < 256; byte++)
    if (data->fallback[byte] != TOKEN_NONE) tokenizer->sizes[data->fallback[byte]] = 1;
  if (data->unknown != TOKEN_NONE && data->unknown < tokenizer->tokens_end) tokenizer->sizes[data->unknown] = 0;
  return true;
}

/* ---- Ranges ---- */

bool marking_begin(struct marking *marking, const struct text_range *ranges, size_t count) {
  *marking = (struct marking){.ranges = ranges, .count = count};
  marking->part = calloc(2 * count + 1, sizeof *marking->part);
  marking->segment = marking->part + count;
  marking->marks = calloc(64, sizeof *marking->marks);
  marking->capacity = marking->marks != NULL ? 64 : 0;
  return marking->part != NULL && marking->marks != NULL;
}

void marking_end(struct marking *marking) {
  free(marking->part);
  free(marking->marks);
  *marking = (struct marking){0};
}

/* The bits of the ranges that overlap this one. */
static uint8_t overlaps(const struct marked_range *ranges, size_t count, size_t from, size_t to) {
  uint8_t mark = 0;
  for (size_t i = 0; i < count; i++)
    if (ranges[i].from < to && from < ranges[i].to) mark |= ranges[i].mark;
  return mark;
}

static uint8_t overlaps_in_text(const struct marking *marking, size_t from, size_t to) {
  uint8_t mark = 0;
  for (size_t i = 0; i < marking->count; i++)
    if (marking->ranges[i].from < to && from < marking->ranges[i].to) mark |= mark_of_range(i);
  return mark;
}

/* Where the byte `at` of a text comes to be in its normal form: after the form of what is before it. */
static bool place_in_form(const struct normalizers *normalizers, const char *text, size_t at, size_t size, size_t *to) {
  struct bytes form = {0};
  *to = at;
  if (at == 0 || normalizers->count == 0) return true;
  bool good = normalize(normalizers, text, at, &form);
  *to = form.size < size ? form.size : size;
  bytes_free(&form);
  return good;
}

bool marking_part(struct marking *marking, const struct normalizers *normalizers, const char *text, size_t from,
                  size_t to, size_t size) {
  marking->n_part = 0;
  for (size_t i = 0; i < marking->count; i++) {
    const struct text_range *range = &marking->ranges[i];
    if (range->from >= to || range->to <= from) continue;
    struct marked_range *mapped = &marking->part[marking->n_part++];
    mapped->to = size;
    mapped->mark = mark_of_range(i);
    if (!place_in_form(normalizers, text + from, range->from > from ? range->from - from : 0, size, &mapped->from) ||
        (range->to < to && !place_in_form(normalizers, text + from, range->to - from, size, &mapped->to)))
      return false;
  }
  return true;
}

/* Where byte `at` of a segment comes to be when it is edited to `size` bytes of `text`. What is put before the segment
 * is its first byte's. */
static size_t in_edited(const struct prefix *prefix, const char *text, size_t length, size_t size, size_t at) {
  if (prefix == NULL || at == 0) return at;
  size_t grows = prefix->blank != NULL ? strlen(prefix->blank) - 1 : 0, blanks = 0, before = 0;
  for (size_t i = 0; i < length; i++) {
    bool blank = prefix->blank != NULL && text[i] == ' ';
    blanks += blank;
    before += blank && i < at;
  }
  return at + grows * before + (size - length - grows * blanks);
}

void marking_segment(struct marking *marking, const struct prefix *prefix, const char *form, size_t from, size_t to,
                     size_t size) {
  marking->n_segment = 0;
  for (size_t i = 0; i < marking->n_part; i++) {
    const struct marked_range *range = &marking->part[i];
    if (range->from >= to || range->to <= from) continue;
    size_t begin = range->from > from ? range->from - from : 0, end = (range->to < to ? range->to : to) - from;
    marking->segment[marking->n_segment++] =
        (struct marked_range){in_edited(prefix, form + from, to - from, size, begin),
                              in_edited(prefix, form + from, to - from, size, end), range->mark};
  }
}

/* ---- Tokens ---- */

static bool reserve(struct marking *marking, size_t count) {
  if (count <= marking->capacity) return true;
  uint8_t *grown = realloc(marking->marks, 2 * count * sizeof *grown);
  if (grown == NULL) return false;
  marking->marks = grown;
  marking->capacity = 2 * count;
  return true;
}

bool marking_word(struct marking *marking, const struct encoder *encoder, size_t from, size_t to, size_t before,
                  size_t count) {
  const uint32_t *sizes = encoder->tokenizer->sizes;
  if (!reserve(marking, count)) return false;
  uint8_t any = overlaps(marking->segment, marking->n_segment, from, to);
  const size_t size = to - from + before;
  size_t all = 0, at = 0, unknown = 0;
  for (size_t i = 0; i < count; i++) {
    all += sizes[encoder->tokens[i]];
    unknown += sizes[encoder->tokens[i]] == 0;
  }
  const size_t rest = unknown == 1 && all < size ? size - all : 0; /* of one unknown token */
  for (size_t i = 0; i < count; i++) {
    size_t begin = at > before ? at - before : 0;
    at += sizes[encoder->tokens[i]] > 0 ? sizes[encoder->tokens[i]] : rest;
    size_t end = at > before + begin ? at - before : begin + 1;
    const bool adds_up = all + rest == size;
    marking->marks[i] =
        any != 0 && adds_up ? overlaps(marking->segment, marking->n_segment, from + begin, from + end) : any;
  }
  return true;
}

void marking_added(struct marking *marking, bool in_form, size_t from, size_t to) {
  marking->marks[0] =
      in_form ? overlaps(marking->part, marking->n_part, from, to) : overlaps_in_text(marking, from, to);
}
