#include "gen/jinja/scan.h"

#include <stdlib.h>
#include <string.h>

size_t jj_scan_space(const char *bytes, size_t length) {
  size_t at = 0;
  while (at < length) {
    unsigned char c = (unsigned char)bytes[at];
    if (c == ' ' || (c >= 9 && c <= 13) || (c >= 28 && c <= 31)) {
      at++;
      continue;
    }
    if (c < 0x80) break;
    int size;
    if (!jj_is_space_code(jj_utf8_decode(bytes + at, length - at, &size)) || size == 1) break;
    at += (size_t)size;
  }
  return at;
}

size_t jj_scan_space_before(const char *bytes, size_t length) {
  if (length == 0) return 0;
  size_t start = length - 1;
  while (start > 0 && ((unsigned char)bytes[start] & 0xC0) == 0x80) start--;
  return jj_scan_space(bytes + start, length - start) == length - start ? length - start : 0;
}

size_t jj_scan_name(const char *bytes, size_t length) {
  size_t at = 0;
  while (at < length) {
    unsigned char c = (unsigned char)bytes[at];
    bool digit = c >= '0' && c <= '9';
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (digit && at > 0)) {
      at++;
      continue;
    }
    int size = 1;
    if (c < 0x80 || !jj_is_alpha_code(jj_utf8_decode(bytes + at, length - at, &size)) || size == 1) break;
    at += (size_t)size;
  }
  return at;
}

/* The largest number that an integer can be the negative of. */
#define MAGNITUDE ((uint64_t)INT64_MAX + 1)

/* Digits of a base with single underscores between them; gives the length, and their value in *value. */
static size_t scan_digits(const char *bytes, size_t length, int base, uint64_t *value, bool *overflow) {
  size_t at = 0;
  while (at < length) {
    size_t digit_at = bytes[at] == '_' && at > 0 ? at + 1 : at;
    if (digit_at >= length) break;
    int c = (unsigned char)bytes[digit_at], lower = c | 0x20;
    int digit = c >= '0' && c <= '9' ? c - '0' : lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : 99;
    if (digit >= base) break;
    if (*value > (MAGNITUDE - (uint64_t)digit) / (uint64_t)base) *overflow = true;
    *value = *value * (uint64_t)base + (uint64_t)digit;
    at = digit_at + 1;
  }
  return at;
}

static size_t decimal_digits(const char *bytes, size_t length) {
  uint64_t value = 0;
  bool overflow = false;
  return scan_digits(bytes, length, 10, &value, &overflow);
}

static size_t real_length(const char *bytes, size_t length) {
  size_t at = decimal_digits(bytes, length);
  bool real = false;
  if (at + 1 < length && bytes[at] == '.') {
    size_t fraction = decimal_digits(bytes + at + 1, length - at - 1);
    if (fraction > 0) {
      at += 1 + fraction;
      real = true;
    }
  }
  if (at + 1 < length && (bytes[at] == 'e' || bytes[at] == 'E')) {
    size_t digits_at = at + 1 + (bytes[at + 1] == '+' || bytes[at + 1] == '-');
    size_t digits = digits_at < length ? decimal_digits(bytes + digits_at, length - digits_at) : 0;
    if (digits > 0) {
      at = digits_at + digits;
      real = true;
    }
  }
  return real ? at : 0;
}

static double read_double(const char *bytes, size_t length) {
  char small[64], *text = length < sizeof small ? small : malloc(length + 1);
  if (text == NULL) return 0;
  size_t count = 0;
  for (size_t i = 0; i < length; i++) {
    if (bytes[i] != '_') text[count++] = bytes[i];
  }
  text[count] = '\0';
  double value = strtod(text, NULL);
  if (text != small) free(text);
  return value;
}

struct number jj_scan_number(const char *bytes, size_t length, bool may_be_real) {
  struct number number = {0};
  size_t real = may_be_real ? real_length(bytes, length) : 0;
  if (real > 0) {
    number.real = true;
    number.length = real;
    number.as_double = read_double(bytes, real);
    return number;
  }
  uint64_t value = 0;
  int letter = length > 2 && bytes[0] == '0' ? bytes[1] | 0x20 : 0;
  int base = letter == 'x' ? 16 : letter == 'o' ? 8 : letter == 'b' ? 2 : 10;
  if (base != 10) {
    size_t from = bytes[2] == '_' ? 3 : 2;
    size_t digits = scan_digits(bytes + from, length - from, base, &value, &number.overflow);
    if (digits > 0) number.length = from + digits;
  }
  if (number.length == 0) {
    value = 0;
    /* A number does not begin with 0 unless it is all zeros: "01" is two tokens, and so a syntax error. */
    bool zero = bytes[0] == '0';
    size_t all = 1;
    while (zero && all < length &&
           (bytes[all] == '0' || (bytes[all] == '_' && all + 1 < length && bytes[all + 1] == '0')))
      all++;
    number.length = zero ? all : scan_digits(bytes, length, 10, &value, &number.overflow);
  }
  number.as_int = (int64_t)value;
  return number;
}

static int hex_value(const char *bytes, size_t length, int digits, uint32_t *code) {
  *code = 0;
  if (length < (size_t)digits) return 0;
  for (int i = 0; i < digits; i++) {
    int c = (unsigned char)bytes[i], lower = c | 0x20;
    int digit = c >= '0' && c <= '9' ? c - '0' : lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
    if (digit < 0) return 0;
    *code = *code << 4 | (uint32_t)digit;
  }
  return digits;
}

static size_t octal_value(const char *bytes, size_t length, uint32_t *code) {
  size_t count = 0;
  *code = 0;
  while (count < 3 && count < length && bytes[count] >= '0' && bytes[count] <= '7') {
    *code = *code * 8 + (uint32_t)(bytes[count++] - '0');
  }
  return count;
}

/* Reads one escape after its backslash; gives the bytes read, or 0 when it is malformed. *size bytes go to out. */
static size_t read_escape(const char *bytes, size_t length, char out[4], int *size) {
  static const char from[] = "abfnrtv\\'\"", to[] = "\a\b\f\n\r\t\v\\'\"";
  const char *simple = bytes[0] != '\0' ? strchr(from, bytes[0]) : NULL;
  *size = 1;
  if (simple != NULL) {
    out[0] = to[simple - from];
    return 1;
  }
  if (bytes[0] == '\n') {
    *size = 0;
    return 1;
  }
  uint32_t code;
  int digits = bytes[0] == 'x' ? 2 : bytes[0] == 'u' ? 4 : bytes[0] == 'U' ? 8 : 0;
  if (digits > 0) {
    if (hex_value(bytes + 1, length - 1, digits, &code) == 0 || code > 0x10FFFF) return 0;
    *size = jj_utf8_encode(code, out);
    return (size_t)digits + 1;
  }
  size_t octal = octal_value(bytes, length, &code);
  if (octal > 0) {
    *size = jj_utf8_encode(code, out);
    return octal;
  }
  if (bytes[0] == 'N') return 0; /* names of characters would need Unicode's table of names */
  out[0] = '\\';
  *size = 1;
  return SIZE_MAX; /* an unknown escape keeps its backslash */
}

bool jj_scan_unescape(struct pool *pool, const char *bytes, size_t length, struct jinja_value *out) {
  struct jinja_string *string = jj_string_new(pool, NULL, length);
  size_t count = 0;
  for (size_t at = 0; at < length;) {
    if (bytes[at] != '\\') {
      string->bytes[count++] = bytes[at++];
      continue;
    }
    if (at + 1 >= length) return false;
    char code[4];
    int size;
    size_t used = read_escape(bytes + at + 1, length - at - 1, code, &size);
    if (used == 0) return false;
    memcpy(string->bytes + count, code, (size_t)size);
    count += (size_t)size;
    at += used == SIZE_MAX ? 1 : 1 + used;
  }
  string->length = count;
  string->bytes[count] = '\0';
  *out = jj_string_value(string);
  return true;
}
