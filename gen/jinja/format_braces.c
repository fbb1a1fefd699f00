/* The brace style: text.format(values). */
#include "gen/jinja/format.h"

#include <stdlib.h>

#include "gen/jinja/support.h"

struct braces {
  struct run *run;
  const struct call *call;
  int next; /* the number that the next {} gets; -1 once numbers were given by hand */
  bool safe;
};

static struct jinja_value argument(struct braces *b, const char *name, size_t length) {
  size_t digits = strspn(name, "0123456789");
  bool number = digits >= length;
  if (number) {
    if (length > 0 && b->next > 0)
      jj_fail(b->run, "cannot switch from automatic field numbering to manual field specification");
    if (length == 0 && b->next < 0)
      jj_fail(b->run, "cannot switch from manual field specification to automatic field numbering");
    int64_t index = length == 0 ? b->next++ : length < 10 ? strtoll(name, NULL, 10) : INT32_MAX;
    if (length > 0) b->next = -1;
    if (index >= b->call->count)
      jj_fail(b->run, "Replacement index %lld out of range for positional args tuple", (long long)index);
    return b->call->items[index];
  }
  for (int i = 0; i < b->call->keyword_count; i++) {
    const struct jinja_string *keyword = b->call->keywords[i].name;
    if (keyword->length == length && memcmp(keyword->bytes, name, length) == 0) return b->call->keywords[i].value;
  }
  jj_fail(b->run, "KeyError: '%.*s'", (int)length, name);
}

/* name.attr[key]… */
static struct jinja_value field_value(struct braces *b, const char *at, const char *end) {
  const char *stop = at;
  while (stop < end && *stop != '.' && *stop != '[') stop++;
  struct jinja_value value = argument(b, at, (size_t)(stop - at));
  for (at = stop; at < end; at = stop) {
    bool item = *at++ == '[';
    stop = at;
    while (stop < end && (item ? *stop != ']' : *stop != '.' && *stop != '[')) stop++;
    if (stop == at || (item && stop == end)) jj_fail(b->run, "Empty attribute in format string");
    bool number = item && strspn(at, "0123456789") == (size_t)(stop - at);
    struct jinja_value key = number ? jinja_int(strtoll(at, NULL, 10)) : jj_text(b->run->pool, at, (size_t)(stop - at));
    struct jinja_value whole = value;
    value = jj_getitem(b->run, whole, key);
    if (value.kind == JINJA_UNDEFINED) jj_fail(b->run, "%s", jj_undefined_message(b->run, value));
    if (item) stop++;
  }
  return value;
}

static const char *parse_spec(struct run *run, const char *at, const char *end, struct spec *spec) {
  int size = 0;
  bool own_fill = false;
  if (at < end) jj_utf8_decode(at, (size_t)(end - at), &size);
  if (size > 0 && at + size < end && strchr("<>^=", at[size]) != NULL) {
    memcpy(spec->fill, at, (size_t)size);
    spec->fill[size] = '\0';
    spec->align = at[size];
    own_fill = true;
    at += size + 1;
  } else if (at < end && strchr("<>^=", *at) != NULL) {
    spec->align = *at++;
  }
  if (at < end && strchr("+- ", *at) != NULL) spec->sign = *at++;
  if (at < end && *at == '#') spec->alternate = true, at++;
  if (at < end && *at == '0') {
    if (!own_fill) strcpy(spec->fill, "0");
    if (spec->align == '\0') spec->align = '=';
    at++;
  }
  for (; at < end && *at >= '0' && *at <= '9'; at++)
    spec->width = spec->width < 1000000000 ? spec->width * 10 + (*at - '0') : spec->width;
  if (at < end && *at == ',') spec->comma = true, at++;
  if (at < end && *at == '_') spec->underscore = true, at++;
  if (at < end && *at == '.') {
    if (++at == end || *at < '0' || *at > '9') jj_fail(run, "Format specifier missing precision");
    for (spec->precision = 0; at < end && *at >= '0' && *at <= '9'; at++) {
      spec->precision = spec->precision < MAX_PRECISION / 10 ? spec->precision * 10 + (*at - '0') : MAX_PRECISION;
    }
  }
  if (at < end) spec->type = *at++;
  return at;
}

static _Noreturn void bad_type(struct run *run, char type, struct jinja_value value) {
  jj_fail(run, "Unknown format code '%c' for object of type '%s'", type, jj_type_name(value));
}

static void brace_value(struct braces *b, struct spec *spec, struct jinja_value value) {
  struct run *run = b->run;
  if (value.kind == JINJA_BOOL && spec->type != '\0') value = jinja_int(value.as.boolean);
  if (value.kind == JINJA_INT && spec->type == 'c') {
    jj_format_code(run, spec, value);
  } else if (value.kind == JINJA_INT && (spec->type == '\0' || strchr("bdoxXn", spec->type) != NULL)) {
    if (spec->precision >= 0) jj_fail(run, "Precision not allowed in integer format specifier");
    jj_format_int(run, spec, value.as.integer, 0);
  } else if (value.kind == JINJA_INT || value.kind == JINJA_DOUBLE) {
    if (spec->type != '\0' && strchr("eEfFgGn%", spec->type) == NULL) bad_type(run, spec->type, value);
    jj_format_real(run, spec, jj_as_double(value));
  } else if (value.kind == JINJA_STRING) {
    if (spec->type != '\0' && spec->type != 's') bad_type(run, spec->type, value);
    if (spec->align == '=' && spec->fill[0] != '0')
      jj_fail(run, "'=' alignment not allowed in string format specifier");
    if (spec->align == '=') spec->align = '<';
    jj_format_text(run, spec, b->safe ? jj_escape(run, value) : value);
  } else {
    jj_fail(run, "unsupported format string passed to %s.__format__", jj_type_name(value));
  }
}

/* A specification may hold fields itself: "{:>{width}}". */
static struct jinja_value expand_spec(struct braces *b, const char *at, const char *end);

static void brace_field(struct braces *b, const char *at, const char *end) {
  const char *stop = at;
  for (int open = 0; stop < end && (open > 0 || (*stop != ':' && *stop != '!')); stop++)
    open += *stop == '[' ? 1 : *stop == ']' ? -1 : 0;
  struct jinja_value value = field_value(b, at, stop);
  if (stop < end && *stop == '!') {
    char how = stop + 1 < end ? stop[1] : '\0';
    if (strchr("sra", how) == NULL || how == '\0') jj_fail(b->run, "Unknown conversion specifier '%c'", how);
    value = how == 's' ? jj_str(b->run, value) : jj_repr(b->run, value);
    stop += 2;
    if (stop < end && *stop != ':') jj_fail(b->run, "expected ':' after conversion specifier");
  }
  struct jinja_value text = expand_spec(b, stop < end ? stop + 1 : end, end);
  if (text.as.string->length == 0) {
    jj_write_str(b->run, b->safe ? jj_escape(b->run, value) : value);
    return;
  }
  struct spec spec = {.fill = " ", .precision = -1};
  const char *last = text.as.string->bytes + text.as.string->length;
  if (parse_spec(b->run, text.as.string->bytes, last, &spec) != last) jj_fail(b->run, "Invalid format specifier");
  brace_value(b, &spec, value);
}

static const char *matching_brace(struct run *run, const char *at, const char *end) {
  int open = 1;
  for (; at < end; at++) {
    open += *at == '{' ? 1 : *at == '}' ? -1 : 0;
    if (open == 0) return at;
  }
  jj_fail(run, "expected '}' before end of string");
}

static struct jinja_value expand(struct braces *b, const char *at, const char *end, bool doubled) {
  struct buffer *before = jj_capture_begin(b->run);
  jj_enter(b->run);
  while (at < end) {
    if (*at != '{' && *at != '}') {
      jj_write(b->run, at++, 1);
    } else if (doubled && at + 1 < end && at[1] == *at) {
      jj_write(b->run, at, 1);
      at += 2;
    } else if (*at == '}') {
      jj_fail(b->run, "Single '}' encountered in format string");
    } else {
      if (at + 1 == end) jj_fail(b->run, "Single '{' encountered in format string");
      const char *close = matching_brace(b->run, at + 1, end);
      brace_field(b, at + 1, close);
      at = close + 1;
    }
  }
  jj_leave(b->run);
  return jj_capture_end(b->run, before);
}

static struct jinja_value expand_spec(struct braces *b, const char *at, const char *end) {
  return expand(b, at, end, false);
}

struct jinja_value jj_format_braces(struct run *run, struct jinja_value format, const struct call *call) {
  struct braces b = {.run = run, .call = call, .safe = format.safe};
  const struct jinja_string *text = format.as.string;
  return jj_like(expand(&b, text->bytes, text->bytes + text->length, true), format);
}
