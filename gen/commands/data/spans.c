#include "gen/commands/data/spans.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- The question ---- */

/* The bytes of a character that Python's str.lstrip removes; 0: it is none. */
static size_t white_space(const char *text) {
  static const char *const wide[] = {"\xc2\x85",     "\xc2\xa0",     "\xe1\x9a\x80", "\xe2\x80\xa8",
                                     "\xe2\x80\xa9", "\xe2\x80\xaf", "\xe2\x81\x9f", "\xe3\x80\x80"};
  const unsigned char c = (unsigned char)text[0];
  if (c == ' ' || (c >= 0x09 && c <= 0x0d) || (c >= 0x1c && c <= 0x1f)) return 1;
  for (size_t i = 0; i < sizeof wide / sizeof *wide; i++)
    if (strncmp(text, wide[i], strlen(wide[i])) == 0) return strlen(wide[i]);
  const bool quad =
      strncmp(text, "\xe2\x80", 2) == 0 && (unsigned char)text[2] >= 0x80 && (unsigned char)text[2] <= 0x8a;
  return quad ? 3 : 0;
}

const char *span_question(const char *question) {
  for (size_t size; (size = white_space(question)) > 0;) question += size;
  return question;
}

/* ---- The answer of a record ---- */

static const char form[] =
    "an answer is {\"text\": [\"...\"], \"answer_start\": [N]}; without one, both lists are empty";

static const json_t *first_of(const json_t *value) {
  return json_is_array(value) ? json_array_get(value, 0) : value;
}

/* The text and the place of the first answer, as the record has them; NULL: there is none. */
static bool find(const json_t *record, const char *name, bool is_table, const json_t **text, const json_t **start,
                 struct made_text *made, struct problem *problem) {
  char keys[2][200], known[200];
  snprintf(keys[0], sizeof keys[0], "%.180s.text", name);
  snprintf(keys[1], sizeof keys[1], "%.180s.answer_start", name);
  made->field = name;
  const json_t *value = is_table ? json_object_get(record, keys[0]) : json_object_get(record, name);
  *text = is_table ? value : json_object_get(first_of(value), "text");
  *start = json_object_get(is_table ? record : first_of(value), is_table ? keys[1] : "answer_start");
  if (json_is_array(value) && json_array_size(value) == 0) return true;
  if (*text != NULL && *start != NULL) {
    *text = first_of(*text);
    *start = first_of(*start);
    return true;
  }
  if (is_table)
    rt_problem(problem, "the record has no '%s'", *text == NULL ? keys[0] : keys[1]);
  else
    rt_problem(problem, value == NULL ? "the record has no '%s'" : "'%s' has no 'text' and 'answer_start'", name);
  if (value != NULL && !is_table) return rt_help(problem, "%s", form);
  return rt_help(problem, "its fields are: %s", documents_keys(record, known, sizeof known));
}

/* A whole number from 0 on, as a number or as the text of a cell; -1: it is none. */
static int64_t count_of(const json_t *value) {
  const char *text = json_string_value(value);
  if (json_is_integer(value)) return json_integer_value(value) >= 0 ? json_integer_value(value) : -1;
  if (text == NULL || text[0] == '\0' || strlen(text) > 18 || strspn(text, "0123456789") < strlen(text)) return -1;
  return strtoll(text, NULL, 10);
}

/* The byte of a text where its character `count` begins; `size`, where it has fewer. */
static size_t byte_of(const char *text, size_t size, int64_t count) {
  size_t at = 0;
  for (; at < size; at++)
    if (((unsigned char)text[at] & 0xc0) != 0x80 && count-- == 0) break;
  return at;
}

static size_t next_character(const char *text, size_t size, size_t at) {
  do at++;
  while (at < size && ((unsigned char)text[at] & 0xc0) == 0x80);
  return at;
}

static size_t character_before(const char *text, size_t at) {
  do at--;
  while (at > 0 && ((unsigned char)text[at] & 0xc0) == 0x80);
  return at;
}

/* The ranges that an answer from byte `from` to byte `to` of a context of `size` bytes makes. */
static void set_ranges(struct span *span, const char *context, size_t size, size_t from, size_t to, bool trims) {
  size_t begin = next_character(context, size, from), last = character_before(context, to);
  while (trims && begin > 0 && context[begin - 1] == ' ') begin--;
  while (trims && last + 1 < size && context[last] == ' ') last++;
  span->ranges[0] = (struct text_range){0, begin};
  span->ranges[1] = (struct text_range){last, size};
}

bool span_read(const json_t *record, const char *name, bool is_table, const char *context, size_t size, bool trims,
               struct span *span, struct made_text *made, struct problem *problem) {
  const json_t *text, *start;
  *span = (struct span){0};
  if (!find(record, name, is_table, &text, &start, made, problem)) return false;
  const bool no_text = text == NULL || (is_table && json_string_length(text) == 0);
  const bool no_start = start == NULL || (is_table && json_string_length(start) == 0);
  span->is_none = no_text && no_start;
  if (span->is_none) return true;
  const int64_t at = count_of(start);
  if (!json_is_string(text) || json_string_length(text) == 0 || at < 0) {
    rt_problem(problem, "the answer has no text, or no whole number of the character where it begins");
    return rt_help(problem, "%s", form);
  }
  const size_t length = json_string_length(text), from = byte_of(context, size, at);
  if (length > size - from || memcmp(context + from, json_string_value(text), length) != 0) {
    rt_problem(problem, "the answer '%.60s' is not at character %" PRId64 " of the context", json_string_value(text),
               at);
    return rt_help(problem, "answer_start counts characters from 0; leave such records out with --on-bad-record skip");
  }
  set_ranges(span, context, size, from, from + length, trims);
  return true;
}

/* ---- Its tokens ---- */

void span_locate(const struct text_rows *rows, int which, struct span *span) {
  const size_t count = rows->texts[which].count;
  size_t begins = 0, ends = count;
  if (span->is_none) return;
  while (begins < count && (text_rows_mark(rows, which, begins) & mark_of_range(0)) != 0) begins++;
  while (ends > 0 && (text_rows_mark(rows, which, ends - 1) & mark_of_range(1)) != 0) ends--;
  span->begins = begins;
  span->ends = ends;
}

void span_label(const struct text_rows *rows, int which, const struct span *span, int32_t label[2]) {
  const struct row_text *text = &rows->texts[which];
  const size_t first = text->first, end = first + text->kept;
  const size_t at = text_rows_first(rows) + text->at;
  uint32_t token;
  if (!span->is_none && first < span->begins && span->ends < end) {
    const size_t begins = (span->begins < end ? span->begins : end) - 1, ends = span->ends > first ? span->ends : first;
    label[0] = (int32_t)(at + (begins < ends ? begins : ends) - first); /* a character may have several tokens */
    label[1] = (int32_t)(at + (begins < ends ? ends : begins) - first);
    return;
  }
  const bool named = text_rows_token(rows, "cls_token", &token) || text_rows_token(rows, "bos_token", &token);
  label[0] = label[1] = named ? text_rows_find(rows, token) : 0;
}
