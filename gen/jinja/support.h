/* What filters, tests and methods share: reading their arguments. */
#ifndef ACCEL_JINJA_SUPPORT_H
#define ACCEL_JINJA_SUPPORT_H

#include <string.h>

#include "gen/jinja/run.h"

/* The head of a filter's function, and of a method's. */
#define FILTER(name) static struct jinja_value name(struct run *run, struct jinja_value input, const struct call *call)
#define METHOD(name)                                                                                                   \
  static struct jinja_value method_##name(struct run *run, struct jinja_value self, const struct call *call)

/* The argument, or `absent` where it was not given. */
static inline struct jinja_value jj_arg(const struct call *call, int i, struct jinja_value absent) {
  return jj_given(call, i) ? call->items[i] : absent;
}

/* An argument that must be an integer. */
static inline int64_t jj_arg_int(struct run *run, const struct call *call, int i, int64_t absent) {
  if (!jj_given(call, i)) return absent;
  if (call->items[i].kind == JINJA_UNDEFINED) jj_fail_undefined(run, call->items[i]);
  if (!jj_is_integral(call->items[i])) jj_fail(run, "an integer is expected, not '%s'", jj_type_name(call->items[i]));
  return jj_as_int(call->items[i]);
}

static inline bool jj_arg_true(struct run *run, const struct call *call, int i, bool absent) {
  return jj_given(call, i) ? jj_truth(run, call->items[i]) : absent;
}

/* An argument that must be a string. */
static inline const struct jinja_string *jj_arg_string(struct run *run, const struct call *call, int i) {
  if (call->items[i].kind == JINJA_UNDEFINED) jj_fail_undefined(run, call->items[i]);
  if (call->items[i].kind != JINJA_STRING) jj_fail(run, "a string is expected, not '%s'", jj_type_name(call->items[i]));
  return call->items[i].as.string;
}

/* NULL: it was not given, or is none. */
static inline const struct jinja_string *jj_arg_string_or_none(struct run *run, const struct call *call, int i) {
  if (!jj_given(call, i) || call->items[i].kind == JINJA_NONE) return NULL;
  return jj_arg_string(run, call, i);
}

/* A text with the same safety as `like`. */
static inline struct jinja_value jj_like(struct jinja_value text, struct jinja_value like) {
  text.safe = like.kind == JINJA_STRING && like.safe;
  return text;
}

static inline struct jinja_value jj_copy_text(struct run *run, const char *bytes, size_t length) {
  struct jinja_string *string = jj_new_text(run, length);
  if (length > 0) memcpy(string->bytes, bytes, length);
  return jj_string_value(string);
}

/* --- text.c: operations on text that filters and methods both need --- */
/* The first offset of `needle` in the bytes, and the last, or NULL. */
const char *jj_find_bytes(const char *bytes, size_t length, const char *needle, size_t needle_length);
const char *jj_find_last_bytes(const char *bytes, size_t length, const struct jinja_string *needle);
struct jinja_value jj_map_case(struct run *run, struct jinja_value text,
                               char how); /* 'u', 'l', 'c'apitalize, 't'itle, 's'wap */
struct jinja_value jj_strip(struct run *run, struct jinja_value text, const struct jinja_string *chars, bool left,
                            bool right);
struct jinja_value jj_replace(struct run *run, struct jinja_value text, const struct jinja_string *from,
                              const struct jinja_string *to, int64_t count);
struct jinja_value jj_pad(struct run *run, struct jinja_value text, int64_t width, char how,
                          const char *fill); /* 'l', 'r', 'c' */
/* Python's splitlines: the lines without their ends, or with them. */
struct jinja_value jj_lines(struct run *run, struct jinja_value text, bool keep_ends);
/* Joins strings with a separator; all are strings already. */
struct jinja_value jj_join(struct run *run, const struct jinja_string *separator, const struct jinja_value *items,
                           int count);
/* Wraps one line as Python's textwrap does, with expand_tabs and replace_whitespace off; pushes to `lines`. */
void jj_wrap_line(struct run *run, const char *bytes, size_t length, int64_t width, bool break_words,
                  bool break_hyphens, struct jinja_list *lines);

/* How Python's json.dumps writes. */
struct json_style {
  struct jinja_value indent;   /* one level's text or blanks; none: all in one line */
  const char *between, *colon; /* between items, NULL: as json.dumps has it with such an indent; after a key */
  bool ascii, markup, sorts;   /* characters above 126 are escaped, and <, >, & and '; keys are in their order */
};
struct jinja_value jj_json(struct run *run, struct jinja_value value, struct json_style style);

/* Sorts in place, stable. `keys` is sorted along with `items` and decides. equal_first: keys that are equal need no
 * order, as when Python compares them inside of lists. */
void jj_sort(struct run *run, struct jinja_value *keys, struct jinja_value *items, int count, bool reverse,
             bool equal_first);

#endif
