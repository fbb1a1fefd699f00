/* Fields of "%" and of str.format: one description, and one writer of each kind of value. */
#include "gen/jinja/format.h"

#include <math.h>
#include <stdio.h>

#include "gen/jinja/support.h"

/* --- padding --- */

static void write_fill(struct run *run, const struct spec *spec, int64_t count) {
  if (count > 0 && (uint64_t)count > run->max_output)
    jj_fail(run, "the output is too large: the limit is %zu bytes", run->max_output);
  for (; count > 0; count--) jj_write(run, spec->fill, strlen(spec->fill));
}

/* `sign_length` bytes at the front are the sign or prefix, after which '=' puts the fill. */
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

static void check_digits(struct run *run, int digits) {
  if (digits > MAX_DIGITS) jj_fail(run, "a number of %d digits: it can have %d", digits, MAX_DIGITS);
}

void jj_format_int(struct run *run, const struct spec *spec, int64_t value, int digits_at_least) {
  char text[MAX_DIGITS + 200];
  check_digits(run, digits_at_least);
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
  for (int zeros = digits_at_least - (int)count; zeros > 0; zeros--) text[length++] = '0';
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

void jj_format_real(struct run *run, const struct spec *spec, double value) {
  char text[1200], body[1100];
  check_digits(run, spec->precision);
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

void jj_format_text(struct run *run, const struct spec *spec, struct jinja_value text) {
  const struct jinja_string *string = text.as.string;
  size_t length = string->length;
  if (spec->precision >= 0) length = jj_utf8_offset(string->bytes, length, (size_t)spec->precision);
  write_padded(run, spec, string->bytes, length, 0, '<');
}

void jj_format_code(struct run *run, const struct spec *spec, struct jinja_value value) {
  char text[4];
  if (value.kind == JINJA_STRING && jj_utf8_count(value.as.string->bytes, value.as.string->length) == 1) {
    jj_format_text(run, spec, value);
    return;
  }
  if (!jj_is_integral(value)) jj_fail(run, "%%c requires int or char");
  int64_t code = jj_as_int(value);
  if (code < 0 || code > 0x10FFFF) jj_fail(run, "%%c arg not in range(0x110000)");
  write_padded(run, spec, text, (size_t)jj_utf8_encode((uint32_t)code, text), 0, '<');
}
