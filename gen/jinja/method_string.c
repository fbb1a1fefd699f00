/* Methods of strings. Their results are as safe as the string. */
#include "gen/jinja/format.h"
#include "gen/jinja/scan.h"
#include "gen/jinja/support.h"

METHOD(upper) {
  (void)call;
  return jj_map_case(run, self, 'u');
}
METHOD(lower) {
  (void)call;
  return jj_map_case(run, self, 'l');
}
METHOD(capitalize) {
  (void)call;
  return jj_map_case(run, self, 'c');
}
METHOD(title) {
  (void)call;
  return jj_map_case(run, self, 't');
}
METHOD(swapcase) {
  (void)call;
  return jj_map_case(run, self, 's');
}

/* --- strip and pad --- */

METHOD(strip) {
  return jj_strip(run, self, jj_arg_string_or_none(run, call, 0), true, true);
}
METHOD(lstrip) {
  return jj_strip(run, self, jj_arg_string_or_none(run, call, 0), true, false);
}
METHOD(rstrip) {
  return jj_strip(run, self, jj_arg_string_or_none(run, call, 0), false, true);
}

static struct jinja_value pad(struct run *run, struct jinja_value self, const struct call *call, char how) {
  const char *fill = jj_given(call, 1) ? jj_arg_string(run, call, 1)->bytes : " ";
  if (self.safe && jj_given(call, 1)) fill = jj_escape(run, call->items[1]).as.string->bytes;
  if (jj_utf8_count(fill, strlen(fill)) != 1) jj_fail(run, "The fill character must be exactly one character long");
  return jj_pad(run, self, jj_arg_int(run, call, 0, 0), how, fill);
}

METHOD(center) {
  return pad(run, self, call, 'c');
}
METHOD(ljust) {
  return pad(run, self, call, 'l');
}
METHOD(rjust) {
  return pad(run, self, call, 'r');
}

METHOD(zfill) {
  const struct jinja_string *text = self.as.string;
  bool sign = text->length > 0 && (text->bytes[0] == '-' || text->bytes[0] == '+');
  int64_t width = jj_arg_int(run, call, 0, 0);
  if (!sign) return jj_pad(run, self, width, 'r', "0");
  struct jinja_value digits = jj_pad(run, jj_copy_text(run, text->bytes + 1, text->length - 1), width - 1, 'r', "0");
  struct jinja_string *both = jj_new_text(run, digits.as.string->length + 1);
  both->bytes[0] = text->bytes[0];
  memcpy(both->bytes + 1, digits.as.string->bytes, digits.as.string->length);
  return jj_like(jj_string_value(both), self);
}

/* --- search and replace --- */

METHOD(replace) {
  struct jinja_value from = call->items[0], to = call->items[1];
  jj_arg_string(run, call, 0);
  jj_arg_string(run, call, 1);
  if (self.safe) to = jj_escape(run, to);
  return jj_replace(run, self, from.as.string, to.as.string, jj_arg_int(run, call, 2, -1));
}

static bool affix(const struct jinja_string *text, const struct jinja_string *part, bool at_end) {
  if (part->length > text->length) return false;
  return memcmp(text->bytes + (at_end ? text->length - part->length : 0), part->bytes, part->length) == 0;
}

static struct jinja_value any_affix(struct run *run, struct jinja_value self, const struct call *call, bool at_end) {
  struct jinja_value which = call->items[0];
  if (which.kind != JINJA_LIST) return jinja_bool(affix(self.as.string, jj_arg_string(run, call, 0), at_end));
  if (which.as.list->flavour != FLAVOUR_TUPLE) jj_fail(run, "first arg must be str or a tuple of str, not list");
  for (int i = 0; i < which.as.list->count; i++) {
    if (which.as.list->items[i].kind != JINJA_STRING) jj_fail(run, "the tuple must hold strings only");
    if (affix(self.as.string, which.as.list->items[i].as.string, at_end)) return jinja_bool(true);
  }
  return jinja_bool(false);
}

METHOD(startswith) {
  return any_affix(run, self, call, false);
}
METHOD(endswith) {
  return any_affix(run, self, call, true);
}

METHOD(removeprefix) {
  const struct jinja_string *text = self.as.string, *part = jj_arg_string(run, call, 0);
  if (!affix(text, part, false)) return self;
  return jj_like(jj_copy_text(run, text->bytes + part->length, text->length - part->length), self);
}

METHOD(removesuffix) {
  const struct jinja_string *text = self.as.string, *part = jj_arg_string(run, call, 0);
  if (!affix(text, part, true)) return self;
  return jj_like(jj_copy_text(run, text->bytes, text->length - part->length), self);
}

/* The part [start:end] that find and count look at, in bytes. False where start is after the end. */
static bool search_range(struct run *run, const struct jinja_string *text, const struct call *call, size_t *from,
                         size_t *to) {
  int64_t count = (int64_t)jj_utf8_count(text->bytes, text->length);
  int64_t start = jj_arg_int(run, call, 1, 0), stop = jj_arg_int(run, call, 2, count);
  if (start < 0) start = start + count < 0 ? 0 : start + count;
  if (stop < 0) stop = stop + count < 0 ? 0 : stop + count;
  if (stop > count) stop = count;
  if (start > count || start > stop) return false;
  *from = jj_utf8_offset(text->bytes, text->length, (size_t)start);
  *to = jj_utf8_offset(text->bytes, text->length, (size_t)stop);
  return true;
}

static int64_t position(struct run *run, struct jinja_value self, const struct call *call, bool last) {
  const struct jinja_string *text = self.as.string, *part = jj_arg_string(run, call, 0);
  size_t from, to;
  if (!search_range(run, text, call, &from, &to)) return -1;
  const char *found = last ? jj_find_last_bytes(text->bytes + from, to - from, part)
                           : jj_find_bytes(text->bytes + from, to - from, part->bytes, part->length);
  return found != NULL ? (int64_t)jj_utf8_count(text->bytes, (size_t)(found - text->bytes)) : -1;
}

METHOD(find) {
  return jinja_int(position(run, self, call, false));
}
METHOD(rfind) {
  return jinja_int(position(run, self, call, true));
}

static struct jinja_value position_or_fail(struct run *run, struct jinja_value self, const struct call *call,
                                           bool last) {
  int64_t at = position(run, self, call, last);
  if (at < 0) jj_fail(run, "substring not found");
  return jinja_int(at);
}

METHOD(index_of) {
  return position_or_fail(run, self, call, false);
}
METHOD(rindex_of) {
  return position_or_fail(run, self, call, true);
}

METHOD(count) {
  const struct jinja_string *text = self.as.string, *part = jj_arg_string(run, call, 0);
  size_t from, to;
  if (!search_range(run, text, call, &from, &to)) return jinja_int(0);
  if (part->length == 0) return jinja_int((int64_t)jj_utf8_count(text->bytes + from, to - from) + 1);
  int64_t count = 0;
  while (true) {
    const char *found = jj_find_bytes(text->bytes + from, to - from, part->bytes, part->length);
    if (found == NULL) return jinja_int(count);
    count++;
    from = (size_t)(found - text->bytes) + part->length;
  }
}

METHOD(format) {
  return jj_format_braces(run, self, call);
}

METHOD(expandtabs) {
  const struct jinja_string *text = self.as.string;
  int64_t size = jj_arg_int(run, call, 0, 8), column = 0;
  struct buffer *before = jj_capture_begin(run);
  for (size_t i = 0; i < text->length; i++) {
    char c = text->bytes[i];
    if (c == '\t') {
      int64_t fill = size > 0 ? size - column % size : 0;
      column += fill;
      for (; fill > 0; fill--) jj_write(run, " ", 1);
      continue;
    }
    jj_write(run, &c, 1);
    if (((unsigned char)c & 0xC0) != 0x80) column++;
    if (c == '\n' || c == '\r') column = 0;
  }
  return jj_like(jj_capture_end(run, before), self);
}

/* --- questions --- */

typedef bool (*code_test)(uint32_t code);

static bool is_digit(uint32_t c) {
  return c >= '0' && c <= '9';
}
static bool is_alnum(uint32_t c) {
  return is_digit(c) || jj_is_alpha_code(c);
}

static struct jinja_value all_are(struct jinja_value self, code_test test) {
  const struct jinja_string *text = self.as.string;
  for (size_t at = 0; at < text->length;) {
    int size;
    if (!test(jj_utf8_decode(text->bytes + at, text->length - at, &size))) return jinja_bool(false);
    at += (size_t)size;
  }
  return jinja_bool(text->length > 0);
}

METHOD(isdigit) {
  (void)run, (void)call;
  return all_are(self, is_digit);
}
METHOD(isalpha) {
  (void)run, (void)call;
  return all_are(self, jj_is_alpha_code);
}
METHOD(isalnum) {
  (void)run, (void)call;
  return all_are(self, is_alnum);
}
METHOD(isspace) {
  (void)run, (void)call;
  return all_are(self, jj_is_space_code);
}

METHOD(isupper) {
  (void)call;
  return jinja_bool(jj_apply_test(run, jj_find_test("upper"), self, &(struct call){0}));
}
METHOD(islower) {
  (void)call;
  return jinja_bool(jj_apply_test(run, jj_find_test("lower"), self, &(struct call){0}));
}

METHOD(istitle) {
  struct jinja_value titled = jj_map_case(run, self, 't');
  (void)call;
  bool cased = !jj_string_equal(jj_map_case(run, self, 'u').as.string, jj_map_case(run, self, 'l').as.string);
  return jinja_bool(cased && jj_string_equal(titled.as.string, self.as.string));
}

METHOD(isidentifier) {
  (void)run, (void)call;
  size_t length = self.as.string->length;
  return jinja_bool(length > 0 && jj_scan_name(self.as.string->bytes, length) == length);
}

METHOD(isascii) {
  (void)run, (void)call;
  for (size_t i = 0; i < self.as.string->length; i++) {
    if ((unsigned char)self.as.string->bytes[i] >= 0x80) return jinja_bool(false);
  }
  return jinja_bool(true);
}

#define NO_ARGUMENTS {.required = 0}
const struct method jj_methods_string[] = {
    {W_upper, method_upper, NO_ARGUMENTS},
    {W_lower, method_lower, NO_ARGUMENTS},
    {W_casefold, method_lower, NO_ARGUMENTS},
    {W_capitalize, method_capitalize, NO_ARGUMENTS},
    {W_title, method_title, NO_ARGUMENTS},
    {W_swapcase, method_swapcase, NO_ARGUMENTS},
    {W_strip, method_strip, {{"/chars"}, 0, false}},
    {W_lstrip, method_lstrip, {{"/chars"}, 0, false}},
    {W_rstrip, method_rstrip, {{"/chars"}, 0, false}},
    {W_replace, method_replace, {{"/old", "/new", "/count"}, 2, false}},
    {W_startswith, method_startswith, {{"/prefix"}, 1, false}},
    {W_endswith, method_endswith, {{"/suffix"}, 1, false}},
    {W_find, method_find, {{"/sub", "/start", "/end"}, 1, false}},
    {W_rfind, method_rfind, {{"/sub", "/start", "/end"}, 1, false}},
    {W_index, method_index_of, {{"/sub", "/start", "/end"}, 1, false}},
    {W_rindex, method_rindex_of, {{"/sub", "/start", "/end"}, 1, false}},
    {W_count, method_count, {{"/sub", "/start", "/end"}, 1, false}},
    {W_center, method_center, {{"/width", "/fillchar"}, 1, false}},
    {W_ljust, method_ljust, {{"/width", "/fillchar"}, 1, false}},
    {W_rjust, method_rjust, {{"/width", "/fillchar"}, 1, false}},
    {W_zfill, method_zfill, {{"/width"}, 1, false}},
    {W_format, method_format, {.variadic = true}},
    {W_expandtabs, method_expandtabs, {{"tabsize"}, 0, false}},
    {W_removeprefix, method_removeprefix, {{"/prefix"}, 1, false}},
    {W_removesuffix, method_removesuffix, {{"/suffix"}, 1, false}},
    {W_isdigit, method_isdigit, NO_ARGUMENTS},
    {W_isdecimal, method_isdigit, NO_ARGUMENTS},
    {W_isnumeric, method_isdigit, NO_ARGUMENTS},
    {W_isalpha, method_isalpha, NO_ARGUMENTS},
    {W_isalnum, method_isalnum, NO_ARGUMENTS},
    {W_isspace, method_isspace, NO_ARGUMENTS},
    {W_isupper, method_isupper, NO_ARGUMENTS},
    {W_islower, method_islower, NO_ARGUMENTS},
    {W_istitle, method_istitle, NO_ARGUMENTS},
    {W_isidentifier, method_isidentifier, NO_ARGUMENTS},
    {W_isascii, method_isascii, NO_ARGUMENTS},
    {.apply = NULL},
};
