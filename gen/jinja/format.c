/* Formatting in both styles. The fields of "%" and of str.format come down to one description and one writer. */
#include "gen/jinja/format.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "gen/jinja/support.h"

struct spec {
  char fill[5]; /* one code point */
  char align;   /* '<', '>', '^', '=' or 0 */
  char sign;    /* '+', ' ' or '-' */
  bool alternate, comma, underscore;
  int64_t width;
  int precision; /* -1: none */
  char type;     /* 0: none */
};

enum { MAX_PRECISION = 400 };

/* --- padding --- */

static void write_fill(struct run *run, const struct spec *spec, int64_t count) {
  if (count > 0 && (uint64_t)count > run->max_output)
    jj_fail(run, "the output is too large: the limit is %zu bytes", run->max_output);
  for (; count > 0; count--) jj_write(run, spec->fill, strlen(spec->fill));
}

/* `sign_length` bytes at the front are the sign or prefix, behind which '=' puts the fill. */
static void write_padded(struct run *run, const struct spec *spec, const char *text, size_t length, size_t sign_length,
                         char usual) {
  char align = spec->align != '\0' ? spec->align : usual;
  int64_t pad = spec->width - (int64_t)jj_utf8_count(text, length);
  if (pad < 0) pad = 0;
  int64_t left = align == '>' ? pad : align == '^' ? pad / 2 : 0;
  write_fill(run, spec, left);
  if (align == '=') {
    jj_write(run, text, sign_length);
    write_fill(run, spec, pad);
    jj_write(run, text + sign_length, length - sign_length);
    return;
  }
  jj_write(run, text, length);
  write_fill(run, spec, pad - left);
}

/* --- numbers --- */

static size_t put_sign(char *out, const struct spec *spec, bool negative) {
  char sign = negative ? '-' : spec->sign == '+' || spec->sign == ' ' ? spec->sign : '\0';
  if (sign == '\0') return 0;
  out[0] = sign;
  return 1;
}

static void reverse_bytes(char *bytes, size_t length) {
  for (size_t i = 0; i < length / 2; i++) {
    char c = bytes[i];
    bytes[i] = bytes[length - 1 - i];
    bytes[length - 1 - i] = c;
  }
}

/* Digits with a separator every three (or four, in other bases). */
static size_t put_digits(char *out, uint64_t value, int base, bool upper, char separator) {
  const char *digits = upper ? "0123456789ABCDEF" : "0123456789abcdef";
  size_t length = 0;
  int count = 0, group = base == 10 ? 3 : 4;
  do {
    if (separator != '\0' && count > 0 && count % group == 0) out[length++] = separator;
    out[length++] = digits[value % (uint64_t)base];
    value /= (uint64_t)base;
    count++;
  } while (value > 0);
  reverse_bytes(out, length);
  return length;
}

static void format_int(struct run *run, const struct spec *spec, int64_t value, int digits_at_least) {
  char text[512];
  char type = spec->type == '\0' || spec->type == 'n' ? 'd' : spec->type;
  int base = type == 'x' || type == 'X' ? 16 : type == 'o' ? 8 : type == 'b' ? 2 : 10;
  size_t sign = put_sign(text, spec, value < 0);
  if (spec->alternate && base != 10) {
    text[sign++] = '0';
    text[sign++] = type;
  }
  char digits[160];
  uint64_t magnitude = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
  size_t count = put_digits(digits, magnitude, base, type == 'X', spec->comma ? ',' : spec->underscore ? '_' : '\0');
  size_t length = sign;
  for (int zeros = digits_at_least - (int)count; zeros > 0 && length < sizeof text - sizeof digits; zeros--)
    text[length++] = '0';
  memcpy(text + length, digits, count);
  write_padded(run, spec, text, length + count, sign, '>');
}

static void group_integer_part(char *text, size_t size) {
  size_t digits = strspn(text, "0123456789"), length = strlen(text), commas = digits > 0 ? (digits - 1) / 3 : 0;
  if (length + commas + 1 > size) return;
  memmove(text + digits + commas, text + digits, length - digits + 1);
  for (size_t from = digits, to = digits + commas; to > from;) {
    for (int i = 0; i < 3; i++) text[--to] = text[--from];
    text[--to] = ',';
  }
}

static void format_real(struct run *run, const struct spec *spec, double value) {
  char text[1200], body[1100];
  size_t sign = put_sign(text, spec, signbit(value) && !isnan(value));
  char type = spec->type, pattern[16];
  double magnitude = fabs(value);
  bool percent = type == '%';
  if (percent) magnitude *= 100;
  if (isnan(value) || isinf(value)) {
    bool upper = type == 'F' || type == 'E' || type == 'G';
    snprintf(body, sizeof body, "%s", isnan(value) ? (upper ? "NAN" : "nan") : upper ? "INF" : "inf");
  } else if (type == '\0' && spec->precision < 0) {
    jj_double_text(magnitude, body);
  } else {
    int precision = spec->precision < 0 ? 6 : spec->precision;
    char c = percent ? 'f' : type == '\0' || type == 'n' ? 'g' : type;
    if (c == 'g' && type == '\0' && precision == 0) precision = 1;
    snprintf(pattern, sizeof pattern, "%%%s.*%c", spec->alternate ? "#" : "", c);
    snprintf(body, sizeof body, pattern, precision, magnitude);
    if (type == '\0' && strpbrk(body, ".e") == NULL) strcat(body, ".0");
  }
  if (spec->comma) group_integer_part(body, sizeof body);
  int length = snprintf(text + sign, sizeof text - sign, "%s%s", body, percent ? "%" : "");
  write_padded(run, spec, text, sign + (size_t)length, sign, '>');
}

static void format_text(struct run *run, const struct spec *spec, struct jinja_value text) {
  const struct jinja_string *string = text.as.string;
  size_t length = string->length;
  if (spec->precision >= 0) length = jj_utf8_offset(string->bytes, length, (size_t)spec->precision);
  write_padded(run, spec, string->bytes, length, 0, '<');
}

static void write_code(struct run *run, const struct spec *spec, struct jinja_value value) {
  char text[4];
  if (value.kind == JINJA_STRING && jj_utf8_count(value.as.string->bytes, value.as.string->length) == 1) {
    format_text(run, spec, value);
    return;
  }
  if (!jj_is_integral(value)) jj_fail(run, "%%c requires int or char");
  int64_t code = jj_as_int(value);
  if (code < 0 || code > 0x10FFFF) jj_fail(run, "%%c arg not in range(0x110000)");
  write_padded(run, spec, text, (size_t)jj_utf8_encode((uint32_t)code, text), 0, '<');
}

/* --- the "%" style --- */

struct percent {
  struct run *run;
  const char *at, *end;
  struct jinja_value values; /* a tuple, a map, or one value */
  int used;
  bool safe; /* the format is safe text: arguments are escaped */
};

static struct jinja_value next_value(struct percent *p) {
  bool tuple = p->values.kind == JINJA_LIST && p->values.as.list->flavour == FLAVOUR_TUPLE;
  int count = tuple ? p->values.as.list->count : 1;
  if (p->used >= count) jj_fail(p->run, "not enough arguments for format string");
  return tuple ? p->values.as.list->items[p->used++] : (p->used++, p->values);
}

static struct jinja_value named_value(struct percent *p) {
  const char *from = p->at;
  int open = 1;
  for (; p->at < p->end && open > 0; p->at++) open += *p->at == '(' ? 1 : *p->at == ')' ? -1 : 0;
  if (open > 0) jj_fail(p->run, "incomplete format key");
  if (p->values.kind != JINJA_MAP) jj_fail(p->run, "format requires a mapping");
  struct jinja_value key = jj_text(p->run->pool, from, (size_t)(p->at - from - 1));
  const struct map_entry *entry = jj_map_find(p->values.as.map, key);
  if (entry == NULL) jj_fail(p->run, "KeyError: '%s'", key.as.string->bytes);
  return entry->value;
}

static int64_t percent_number(struct percent *p) {
  if (p->at < p->end && *p->at == '*') {
    p->at++;
    struct jinja_value value = next_value(p);
    if (!jj_is_integral(value)) jj_fail(p->run, "* wants int");
    return jj_as_int(value);
  }
  int64_t number = 0;
  for (; p->at < p->end && *p->at >= '0' && *p->at <= '9'; p->at++)
    number = number < 1000000000 ? number * 10 + (*p->at - '0') : number;
  return number;
}

static double as_real(struct run *run, struct jinja_value value) {
  if (value.kind == JINJA_UNDEFINED) jj_fail_undefined(run, value);
  if (!jj_is_number(value)) jj_fail(run, "must be real number, not %s", jj_type_name(value));
  return jj_as_double(value);
}

static int64_t as_integer(struct run *run, struct jinja_value value, char type) {
  if (value.kind == JINJA_UNDEFINED) jj_fail_undefined(run, value);
  if (value.kind == JINJA_DOUBLE && strchr("diu", type) != NULL && fabs(value.as.real) < 9e18)
    return (int64_t)value.as.real;
  if (!jj_is_integral(value)) jj_fail(run, "%%%c format: a real number is required, not %s", type, jj_type_name(value));
  return jj_as_int(value);
}

static void percent_value(struct percent *p, struct spec *spec, struct jinja_value value, bool zero) {
  struct run *run = p->run;
  char type = spec->type;
  if (strchr("diuxXo", type) != NULL) {
    if (strchr("diu", type) != NULL) spec->type = 'd';
    if (zero && spec->align == '\0') spec->align = '=', strcpy(spec->fill, "0");
    format_int(run, spec, as_integer(run, value, type), spec->precision);
  } else if (strchr("eEfFgG", type) != NULL) {
    if (zero && spec->align == '\0') spec->align = '=', strcpy(spec->fill, "0");
    format_real(run, spec, as_real(run, value));
  } else {
    if (spec->align == '\0') spec->align = '>';
    if (type == 'c') {
      write_code(run, spec, value);
      return;
    }
    struct jinja_value text = type == 's' ? jj_str(run, value) : jj_repr(run, value);
    if (p->safe) text = jj_escape(run, text);
    format_text(run, spec, text);
  }
}

static void percent_field(struct percent *p) {
  struct spec spec = {.fill = " ", .precision = -1};
  bool zero = false, named = p->at < p->end && *p->at == '(';
  struct jinja_value value = {0};
  if (named) {
    p->at++;
    value = named_value(p);
  }
  for (; p->at < p->end && strchr("-+ #0", *p->at) != NULL; p->at++) {
    if (*p->at == '-') spec.align = '<';
    if (*p->at == '+' || (*p->at == ' ' && spec.sign != '+')) spec.sign = *p->at;
    if (*p->at == '#') spec.alternate = true;
    if (*p->at == '0') zero = true;
  }
  spec.width = percent_number(p);
  if (spec.width < 0) spec.align = '<', spec.width = -spec.width;
  if (p->at < p->end && *p->at == '.') {
    p->at++;
    int64_t precision = percent_number(p);
    spec.precision = precision < 0 ? 0 : precision > MAX_PRECISION ? MAX_PRECISION : (int)precision;
  }
  while (p->at < p->end && strchr("hlL", *p->at) != NULL) p->at++;
  if (p->at == p->end) jj_fail(p->run, "incomplete format");
  spec.type = *p->at++;
  if (spec.type == '%') {
    jj_write(p->run, "%", 1);
    return;
  }
  if (strchr("diuxXoeEfFgGcsra", spec.type) == NULL) jj_fail(p->run, "unsupported format character '%c'", spec.type);
  if (!named) value = next_value(p);
  percent_value(p, &spec, value, zero);
}

struct jinja_value jj_format_percent(struct run *run, struct jinja_value format, struct jinja_value value) {
  const struct jinja_string *text = format.as.string;
  struct percent p = {
      .run = run, .at = text->bytes, .end = text->bytes + text->length, .values = value, .safe = format.safe};
  struct buffer *before = jj_capture_begin(run);
  while (p.at < p.end) {
    const char *sign = memchr(p.at, '%', (size_t)(p.end - p.at));
    const char *stop = sign != NULL ? sign : p.end;
    jj_write(run, p.at, (size_t)(stop - p.at));
    p.at = sign != NULL ? sign + 1 : p.end;
    if (sign != NULL) percent_field(&p);
  }
  enum flavour flavour = value.kind == JINJA_LIST ? value.as.list->flavour : FLAVOUR_GENERATOR;
  bool indexed = flavour == FLAVOUR_LIST || flavour == FLAVOUR_RANGE || flavour == FLAVOUR_GROUP;
  bool all_used = flavour == FLAVOUR_TUPLE
                      ? p.used >= value.as.list->count
                      : p.used > 0 || indexed || value.kind == JINJA_MAP || value.kind == JINJA_UNDEFINED;
  if (!all_used) jj_fail(run, "not all arguments converted during string formatting");
  return jj_like(jj_capture_end(run, before), format);
}

/* --- the brace style --- */

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
      spec->precision = spec->precision < MAX_PRECISION ? spec->precision * 10 + (*at - '0') : MAX_PRECISION;
    }
    if (spec->precision > MAX_PRECISION) spec->precision = MAX_PRECISION;
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
    write_code(run, spec, value);
  } else if (value.kind == JINJA_INT && (spec->type == '\0' || strchr("bdoxXn", spec->type) != NULL)) {
    if (spec->precision >= 0) jj_fail(run, "Precision not allowed in integer format specifier");
    format_int(run, spec, value.as.integer, 0);
  } else if (value.kind == JINJA_INT || value.kind == JINJA_DOUBLE) {
    if (spec->type != '\0' && strchr("eEfFgGn%", spec->type) == NULL) bad_type(run, spec->type, value);
    format_real(run, spec, jj_as_double(value));
  } else if (value.kind == JINJA_STRING) {
    if (spec->type != '\0' && spec->type != 's') bad_type(run, spec->type, value);
    if (spec->align == '=' && spec->fill[0] != '0')
      jj_fail(run, "'=' alignment not allowed in string format specifier");
    if (spec->align == '=') spec->align = '<';
    format_text(run, spec, b->safe ? jj_escape(run, value) : value);
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
