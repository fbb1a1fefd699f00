/* Filters on numbers. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "gen/jinja/scan.h"
#include "gen/jinja/support.h"

FILTER(filter_abs) {
  (void)call;
  if (input.kind == JINJA_UNDEFINED) jj_fail_undefined(run, input);
  if (!jj_is_number(input)) jj_fail(run, "bad operand type for abs(): '%s'", jj_type_name(input));
  if (input.kind == JINJA_DOUBLE) return jinja_double(fabs(input.as.real));
  int64_t value = jj_as_int(input);
  return value < 0 ? jj_negate(run, jinja_int(value)) : jinja_int(value);
}

/* --- text to numbers, as Python's int() and float() read it --- */

static bool trimmed(const struct jinja_string *text, const char **at, size_t *length) {
  *at = text->bytes + jj_scan_space(text->bytes, text->length);
  *length = (size_t)(text->bytes + text->length - *at);
  size_t space;
  while ((space = jj_scan_space_before(*at, *length)) > 0) *length -= space;
  return *length > 0;
}

static int digit_of(char c) {
  int lower = c | 0x20;
  return c >= '0' && c <= '9' ? c - '0' : lower >= 'a' && lower <= 'z' ? lower - 'a' + 10 : 99;
}

static bool read_int(struct run *run, const struct jinja_string *text, int base, int64_t *out) {
  const char *at;
  size_t length, i = 0;
  if (!trimmed(text, &at, &length)) return false;
  bool negative = at[0] == '-';
  if (at[0] == '-' || at[0] == '+') i++;
  int letter = i + 1 < length && at[i] == '0' ? at[i + 1] | 0x20 : 0;
  bool prefixed = (letter == 'x' && (base == 16 || base == 0)) || (letter == 'o' && (base == 8 || base == 0)) ||
                  (letter == 'b' && (base == 2 || base == 0));
  if (prefixed && base == 0) base = letter == 'x' ? 16 : letter == 'o' ? 8 : 2;
  if (base == 0) base = 10;
  if (prefixed) i += 2;
  uint64_t value = 0;
  bool digit = false, underscore = prefixed;
  if (prefixed && i < length && at[i] == '_') i++;
  for (; i < length; i++) {
    if (at[i] == '_' && digit) {
      digit = false;
      underscore = true;
      continue;
    }
    int d = digit_of(at[i]);
    if (d >= base) return false;
    if (value > (INT64_MAX - (uint64_t)d) / (uint64_t)base) jj_fail(run, "the integer does not fit in 64 bits");
    value = value * (uint64_t)base + (uint64_t)d;
    digit = true;
  }
  (void)underscore;
  *out = negative ? -(int64_t)value : (int64_t)value;
  return digit;
}

static bool same_word(const char *at, size_t length, const char *word) {
  if (strlen(word) != length) return false;
  for (size_t i = 0; i < length; i++) {
    if ((at[i] | 0x20) != word[i]) return false;
  }
  return true;
}

static bool read_real(const struct jinja_string *text, double *out) {
  const char *at;
  size_t length;
  char copy[512];
  if (!trimmed(text, &at, &length) || length >= sizeof copy) return false;
  size_t sign = at[0] == '-' || at[0] == '+', count = 0;
  if (same_word(at + sign, length - sign, "nan")) return *out = NAN, true;
  if (same_word(at + sign, length - sign, "inf") || same_word(at + sign, length - sign, "infinity")) {
    *out = at[0] == '-' ? -INFINITY : INFINITY;
    return true;
  }
  for (size_t i = 0; i < length; i++) {
    bool between = at[i] == '_' && i > 0 && i + 1 < length && digit_of(at[i - 1]) < 10 && digit_of(at[i + 1]) < 10;
    if (between) continue;
    if (strchr("0123456789+-.eE", at[i]) == NULL || at[i] == '\0') return false;
    copy[count++] = at[i];
  }
  copy[count] = '\0';
  char *end;
  *out = strtod(copy, &end);
  return end == copy + count && count > 0;
}

static struct jinja_value real_to_int(struct run *run, double value) {
  if (isinf(value)) jj_fail(run, "cannot convert float infinity to integer");
  if (fabs(value) >= 9.2e18) jj_fail(run, "the result does not fit in a 64-bit integer");
  return jinja_int((int64_t)value);
}

FILTER(filter_int) {
  struct jinja_value fallback = jj_arg(call, 0, jinja_int(0));
  int64_t base = jj_arg_int(run, call, 1, 10), value;
  double real;
  if (input.kind == JINJA_UNDEFINED) jj_fail_undefined(run, input);
  if (jj_is_integral(input)) return jinja_int(jj_as_int(input));
  if (input.kind == JINJA_DOUBLE) return isnan(input.as.real) ? fallback : real_to_int(run, input.as.real);
  if (input.kind != JINJA_STRING) return fallback;
  if (base != 0 && (base < 2 || base > 36)) return fallback;
  if (read_int(run, input.as.string, (int)base, &value)) return jinja_int(value);
  if (!read_real(input.as.string, &real) || isnan(real) || isinf(real)) return fallback;
  return real_to_int(run, real);
}

FILTER(filter_float) {
  double value;
  if (input.kind == JINJA_UNDEFINED) jj_fail_undefined(run, input);
  if (jj_is_number(input)) return jinja_double(jj_as_double(input));
  if (input.kind == JINJA_STRING && read_real(input.as.string, &value)) return jinja_double(value);
  return jj_arg(call, 0, jinja_double(0));
}

/* --- round --- */

/* Half to even on the decimal that the double is: what printf does with the exact value. */
static double round_common(double value, int64_t precision) {
  char text[400];
  if (precision > 300 || !isfinite(value)) return value;
  if (precision >= 0) {
    snprintf(text, sizeof text, "%.*f", (int)precision, value);
    return strtod(text, NULL);
  }
  if (precision < -308) return 0;
  double unit = pow(10, (double)-precision);
  return nearbyint(value / unit) * unit;
}

static int64_t round_int(int64_t value, int64_t precision) {
  if (precision >= 0) return value;
  if (precision < -18) return 0;
  int64_t unit = 1;
  for (int64_t i = precision; i < 0; i++) unit *= 10;
  int64_t rest = value % unit, down = value - rest;
  if (rest < 0) rest += unit, down -= unit;
  bool up = rest * 2 > unit || (rest * 2 == unit && (down / unit) % 2 != 0);
  return up ? down + unit : down;
}

FILTER(filter_round) {
  int64_t precision = jj_arg_int(run, call, 0, 0);
  struct jinja_value how = jj_arg(call, 1, jj_cstr(run->pool, "common"));
  const char *method = how.kind == JINJA_STRING ? how.as.string->bytes : "";
  if (strcmp(method, "common") != 0 && strcmp(method, "ceil") != 0 && strcmp(method, "floor") != 0) {
    jj_fail(run, "method must be common, ceil or floor");
  }
  if (input.kind == JINJA_UNDEFINED) jj_fail_undefined(run, input);
  if (!jj_is_number(input)) jj_fail(run, "type %s doesn't define __round__ method", jj_type_name(input));
  if (strcmp(method, "common") == 0) {
    if (jj_is_integral(input)) return jinja_int(round_int(jj_as_int(input), precision));
    return jinja_double(round_common(input.as.real, precision));
  }
  double unit = pow(10, (double)precision), scaled = jj_as_double(input) * unit;
  if (!isfinite(scaled)) jj_fail(run, "cannot convert float infinity to integer");
  return jinja_double(((method[0] == 'c' ? ceil(scaled) : floor(scaled)) + 0.0) / unit); /* + 0.0: no negative zero */
}

FILTER(filter_filesizeformat) {
  static const char *const decimal[] = {"kB", "MB", "GB", "TB", "PB", "EB", "ZB", "YB"};
  static const char *const binary[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB", "ZiB", "YiB"};
  bool by_1024 = jj_arg_true(run, call, 0, false);
  double bytes = 0, base = by_1024 ? 1024 : 1000, unit;
  char text[64];
  if (input.kind == JINJA_UNDEFINED) jj_fail_undefined(run, input);
  if (input.kind == JINJA_STRING ? !read_real(input.as.string, &bytes) : !jj_is_number(input)) {
    jj_fail(run, "could not convert to float: %s", jj_repr(run, input).as.string->bytes);
  }
  if (input.kind != JINJA_STRING) bytes = jj_as_double(input);
  if (bytes == 1) return jj_cstr(run->pool, "1 Byte");
  if (bytes < base) {
    snprintf(text, sizeof text, "%lld Bytes", (long long)bytes);
    return jj_cstr(run->pool, text);
  }
  int i = 0;
  for (unit = base * base; i < 7 && bytes >= unit; i++) unit *= base;
  snprintf(text, sizeof text, "%.1f %s", base * bytes / unit, (by_1024 ? binary : decimal)[i]);
  return jj_cstr(run->pool, text);
}

const struct filter jj_filters_number[] = {
    {"abs", filter_abs, {.required = 0}},
    {"int", filter_int, {{"default", "base"}, 0, false}},
    {"float", filter_float, {{"default"}, 0, false}},
    {"round", filter_round, {{"precision", "method"}, 0, false}},
    {"filesizeformat", filter_filesizeformat, {{"binary"}, 0, false}},
    {.name = NULL},
};
