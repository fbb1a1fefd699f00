/* The printf style: text % values. */
#include "gen/jinja/format.h"

#include <math.h>

#include "gen/jinja/support.h"

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
    jj_format_int(run, spec, as_integer(run, value, type), spec->precision);
  } else if (strchr("eEfFgG", type) != NULL) {
    if (zero && spec->align == '\0') spec->align = '=', strcpy(spec->fill, "0");
    jj_format_real(run, spec, as_real(run, value));
  } else {
    if (spec->align == '\0') spec->align = '>';
    if (type == 'c') {
      jj_format_code(run, spec, value);
      return;
    }
    struct jinja_value text = type == 's' ? jj_str(run, value) : jj_repr(run, value);
    if (p->safe) text = jj_escape(run, text);
    jj_format_text(run, spec, text);
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
