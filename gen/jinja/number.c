/* Numbers as text. The caller has set the C locale, so the decimal point is a point. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gen/jinja/value.h"

static int count_digits(uint64_t value) {
  int count = 1;
  for (; value >= 10000; value /= 10000) count += 4;
  return count + (value >= 10) + (value >= 100) + (value >= 1000);
}

int jj_int_text(int64_t value, char out[24]) {
  static const char pairs[] = "00010203040506070809101112131415161718192021222324252627282930313233343536373839"
                              "40414243444546474849505152535455565758596061626364656667686970717273747576777879"
                              "8081828384858687888990919293949596979899";
  uint64_t rest = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
  int length = count_digits(rest) + (value < 0), at = length;
  out[length] = '\0';
  for (; rest >= 10; rest /= 100) {
    at -= 2;
    memcpy(out + at, pairs + 2 * (rest % 100), 2);
  }
  if (at > (value < 0)) out[at - 1] = (char)('0' + rest);
  if (value < 0) out[0] = '-';
  return length;
}

/* The digits and the decimal exponent of the shortest "d.ddde±xx" that reads back as `value`. A decimal of up to 15
 * digits survives the way through a double, so 15 is tried first and its zeros are cut; then 16; then 17. */
static int shortest_digits(double value, char digits[24], int *exponent) {
  char text[40];
  int first = value < 2.2250738585072014e-308 ? 0 : 14; /* the smallest doubles have fewer digits to give */
  for (int precision = first; precision <= 16; precision++) {
    snprintf(text, sizeof text, "%.*e", precision, value);
    if (precision == 16 || strtod(text, NULL) == value) break;
  }
  int count = 0;
  char *at = text;
  for (; *at != 'e'; at++) {
    if (*at != '.') digits[count++] = *at;
  }
  *exponent = atoi(at + 1);
  while (count > 1 && digits[count - 1] == '0') count--;
  digits[count] = '\0';
  return count;
}

static int fixed_text(const char *digits, int count, int exponent, char *out) {
  int length = 0;
  if (exponent < 0) {
    length += sprintf(out, "0.");
    for (int i = -1; i > exponent; i--) out[length++] = '0';
    length += sprintf(out + length, "%s", digits);
    return length;
  }
  for (int i = 0; i <= exponent; i++) out[length++] = i < count ? digits[i] : '0';
  out[length++] = '.';
  if (count <= exponent + 1) out[length++] = '0';
  for (int i = exponent + 1; i < count; i++) out[length++] = digits[i];
  out[length] = '\0';
  return length;
}

int jj_double_text(double value, char out[32]) {
  if (isnan(value)) return sprintf(out, "nan");
  int length = 0;
  if (signbit(value)) out[length++] = '-';
  if (isinf(value)) return length + sprintf(out + length, "inf");
  if (value == 0) return length + sprintf(out + length, "0.0");
  char digits[24];
  int exponent, count = shortest_digits(fabs(value), digits, &exponent);
  if (exponent >= -4 && exponent < 16) return length + fixed_text(digits, count, exponent, out + length);
  out[length++] = digits[0];
  if (count > 1) length += sprintf(out + length, ".%s", digits + 1);
  return length + sprintf(out + length, "e%c%02d", exponent < 0 ? '-' : '+', abs(exponent));
}
