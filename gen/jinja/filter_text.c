/* Filters on text. */
#include "gen/jinja/format.h"
#include "gen/jinja/scan.h"
#include "gen/jinja/support.h"

/* Case filters work on str(value), which keeps a safe string safe. */
FILTER(filter_upper) {
  (void)call;
  return jj_map_case(run, jj_str(run, input), 'u');
}
FILTER(filter_lower) {
  (void)call;
  return jj_map_case(run, jj_str(run, input), 'l');
}
FILTER(filter_capitalize) {
  (void)call;
  return jj_map_case(run, jj_str(run, input), 'c');
}

/* Jinja2's title does not count letters after an apostrophe as a word, unlike Python's, and its result is not safe. */
FILTER(filter_title) {
  struct jinja_value text = jj_map_case(run, jj_str(run, input), 'l');
  const struct jinja_string *lower = text.as.string;
  struct buffer *before = jj_capture_begin(run);
  bool first = true;
  (void)call;
  for (size_t at = 0; at < lower->length;) {
    int size;
    uint32_t code = jj_utf8_decode(lower->bytes + at, lower->length - at, &size);
    char changed[4];
    jj_write(run, changed, (size_t)jj_utf8_encode(first ? jj_upper_code(code) : code, changed));
    first = code == '-' || code == '(' || code == '{' || code == '[' || code == '<' || jj_is_space_code(code);
    at += (size_t)size;
  }
  return jj_capture_end(run, before);
}

FILTER(filter_string) {
  (void)call;
  return jj_str(run, input);
}

FILTER(filter_trim) {
  bool chars = jj_given(call, 0) && call->items[0].kind != JINJA_NONE;
  return jj_strip(run, jj_str(run, input), chars ? jj_arg_string(run, call, 0) : NULL, true, true);
}

FILTER(filter_center) {
  return jj_pad(run, jj_str(run, input), jj_arg_int(run, call, 0, 80), 'c', " ");
}

FILTER(filter_replace) {
  struct jinja_value from = call->items[0], to = call->items[1], text = input;
  int64_t count = jj_given(call, 2) && call->items[2].kind != JINJA_NONE ? jj_arg_int(run, call, 2, -1) : -1;
  bool safe_to = to.kind == JINJA_STRING && to.safe, safe_from = from.kind == JINJA_STRING && from.safe;
  bool safe_text = text.kind == JINJA_STRING && text.safe;
  if (!run->autoescape) {
    struct jinja_value plain = jj_str(run, text);
    plain.safe = false;
    return jj_replace(run, plain, jj_str(run, from).as.string, jj_str(run, to).as.string, count);
  }
  text = safe_from || (safe_to && !safe_text) ? jj_escape(run, text) : jj_str(run, text);
  from = jj_str(run, from);
  to = text.safe ? jj_escape(run, to) : jj_str(run, to);
  return jj_replace(run, text, from.as.string, to.as.string, count);
}

/* --- indent --- */

static struct jinja_value indention(struct run *run, const struct call *call) {
  if (jj_given(call, 0) && call->items[0].kind == JINJA_STRING) return call->items[0];
  return jj_pad(run, jj_cstr(run->pool, ""), jj_arg_int(run, call, 0, 4), 'l', " ");
}

static size_t after_line_end(const struct jinja_string *text, size_t at) {
  int size = 1;
  if (at + 1 < text->length && text->bytes[at] == '\r' && text->bytes[at + 1] == '\n') return at + 2;
  if (at < text->length) jj_utf8_decode(text->bytes + at, text->length - at, &size);
  return at + (size_t)size;
}

/* A string with an indention that is safe becomes safe where Python's operators see it: `indention + line` escapes the
 * line, and what is joined of such lines is a plain string again. */
static struct jinja_value indent_by_safe(struct run *run, struct jinja_value input, struct jinja_value by, bool first,
                                         bool blank) {
  const struct jinja_list *lines =
      jj_lines(run, jj_binary(run, OP_ADD, input, jj_cstr(run->pool, "\n")), false).as.list;
  struct jinja_value newline = jj_cstr(run->pool, "\n"), text = lines->items[0];
  if (blank) text = jj_escape(run, text);
  for (int i = 1; i < lines->count; i++) {
    bool indented = blank || lines->items[i].as.string->length > 0;
    struct jinja_value line = indented ? jj_binary(run, OP_ADD, by, lines->items[i]) : lines->items[i];
    line.safe = text.safe;
    text = jj_binary(run, OP_ADD, jj_binary(run, OP_ADD, text, newline), line);
  }
  return first ? jj_binary(run, OP_ADD, by, text) : text;
}

FILTER(filter_indent) {
  if (input.kind == JINJA_UNDEFINED) jj_fail_undefined(run, input);
  if (input.kind != JINJA_STRING)
    jj_fail(run, "unsupported operand type(s) for +=: '%s' and 'str'", jj_type_name(input));
  struct jinja_value by = indention(run, call);
  bool first = jj_arg_true(run, call, 1, false), blank = jj_arg_true(run, call, 2, false);
  if (by.safe && !input.safe) return indent_by_safe(run, input, by, first, blank);
  const struct jinja_list *lines = jj_lines(run, input, false).as.list;
  const struct jinja_string *text = input.as.string;
  struct buffer *before = jj_capture_begin(run);
  size_t at = 0;
  if (first) jj_write_str(run, by);
  for (int i = 0; i < lines->count; i++) {
    bool indented = i > 0 && (blank || lines->items[i].as.string->length > 0);
    if (i > 0) jj_write(run, "\n", 1);
    if (indented) jj_write_str(run, by);
    jj_write_part(run, text, at, lines->items[i].as.string->length);
    at = after_line_end(text, at + lines->items[i].as.string->length);
  }
  /* the text's own last newline: it ends the last line and begins an empty one */
  bool open = text->length > 0 && strchr("\n\r\v\f\x1c\x1d\x1e", text->bytes[text->length - 1]) != NULL;
  if (open) jj_write(run, "\n", 1);
  if (open && blank) jj_write_str(run, by);
  return jj_like(jj_capture_end(run, before), input);
}

/* --- truncate, words --- */

/* Where to cut so that count characters stay at most: at the last space before, unless words may be cut. */
static size_t cut_at(const struct jinja_string *text, int64_t count, bool kill_words) {
  size_t keep = jj_utf8_offset(text->bytes, text->length, (size_t)count);
  for (size_t i = keep; !kill_words && i > 0; i--) {
    if (text->bytes[i - 1] == ' ') return i - 1;
  }
  return keep;
}

FILTER(filter_truncate) {
  int64_t length = jj_arg_int(run, call, 0, 255);
  bool kill_words = jj_arg_true(run, call, 1, false);
  struct jinja_value end = jj_arg(call, 2, jj_cstr(run->pool, "..."));
  int64_t leeway = jj_given(call, 3) && call->items[3].kind != JINJA_NONE ? jj_arg_int(run, call, 3, 5) : 5;
  if (end.kind != JINJA_STRING) jj_fail(run, "object of type '%s' has no len()", jj_type_name(end));
  int64_t end_count = jj_length(run, end), count = jj_length(run, input);
  if (length < end_count) jj_fail(run, "expected length >= %lld, got %lld", (long long)end_count, (long long)length);
  if (leeway < 0) jj_fail(run, "expected leeway >= 0, got %lld", (long long)leeway);
  if (count <= length + leeway) return input;
  if (input.kind != JINJA_STRING) jj_fail(run, "can only truncate a string, not '%s'", jj_type_name(input));
  size_t keep = cut_at(input.as.string, length - end_count, kill_words);
  return jj_binary(run, OP_ADD, jj_like(jj_copy_text(run, input.as.string->bytes, keep), input), end);
}

FILTER(filter_wordcount) {
  const struct jinja_string *text = jj_str(run, input).as.string;
  int64_t words = 0;
  bool inside = false;
  (void)call;
  for (size_t at = 0; at < text->length;) {
    int size;
    uint32_t code = jj_utf8_decode(text->bytes + at, text->length - at, &size);
    bool word = jj_is_alpha_code(code) || (code >= '0' && code <= '9') || code == '_';
    words += word && !inside;
    inside = word;
    at += (size_t)size;
  }
  return jinja_int(words);
}

FILTER(filter_wordwrap) {
  int64_t width = jj_arg_int(run, call, 0, 79);
  bool break_words = jj_arg_true(run, call, 1, true), break_hyphens = jj_arg_true(run, call, 3, true);
  struct jinja_value newline = jj_cstr(run->pool, "\n");
  bool own = jj_given(call, 2) && call->items[2].kind != JINJA_NONE;
  if (own) newline = (jj_arg_string(run, call, 2), call->items[2]);
  if (input.kind == JINJA_UNDEFINED) jj_fail_undefined(run, input);
  if (input.kind != JINJA_STRING) jj_fail(run, "'%s object' has no attribute 'splitlines'", jj_type_name(input));
  if (width <= 0) jj_fail(run, "invalid width %lld (must be > 0)", (long long)width);
  const struct jinja_list *from = jj_lines(run, input, false).as.list;
  struct jinja_value lines = jj_list(run->pool, FLAVOUR_LIST, 0);
  for (int i = 0; i < from->count; i++) {
    const struct jinja_string *line = from->items[i].as.string;
    int before = lines.as.list->count;
    jj_wrap_line(run, line->bytes, line->length, width, break_words, break_hyphens, lines.as.list);
    if (lines.as.list->count == before) jj_push(run->pool, lines.as.list, jj_cstr(run->pool, ""));
  }
  return jj_like(jj_join(run, newline.as.string, lines.as.list->items, lines.as.list->count), newline);
}

FILTER(filter_format) {
  struct jinja_value text = jj_str(run, input), values;
  if (call->count > 0 && call->keyword_count > 0)
    jj_fail(run, "can't handle positional and keyword arguments at the same time");
  if (call->keyword_count > 0) {
    values = jj_map(run->pool);
    for (int i = 0; i < call->keyword_count; i++) {
      jj_map_put(run->pool, values.as.map, jj_string_value(call->keywords[i].name), call->keywords[i].value);
    }
  } else {
    values = jj_list(run->pool, FLAVOUR_TUPLE, call->count);
    for (int i = 0; i < call->count; i++) jj_push(run->pool, values.as.list, call->items[i]);
  }
  return jj_format_percent(run, text, values);
}

const struct filter jj_filters_text[] = {
    {"upper", filter_upper, {.required = 0}},
    {"lower", filter_lower, {.required = 0}},
    {"capitalize", filter_capitalize, {.required = 0}},
    {"title", filter_title, {.required = 0}},
    {"string", filter_string, {.required = 0}},
    {"trim", filter_trim, {{"chars"}, 0, false}},
    {"center", filter_center, {{"width"}, 0, false}},
    {"replace", filter_replace, {{"old", "new", "count"}, 2, false}},
    {"indent", filter_indent, {{"width", "first", "blank"}, 0, false}},
    {"truncate", filter_truncate, {{"length", "killwords", "end", "leeway"}, 0, false}},
    {"wordcount", filter_wordcount, {.required = 0}},
    {"wordwrap", filter_wordwrap, {{"width", "break_long_words", "wrapstring", "break_on_hyphens"}, 0, false}},
    {"format", filter_format, {.variadic = true}},
    {.name = NULL},
};
