#include "gen/spec/scalar.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool one_of(const char *text, const char *const *words) {
  for (; *words != NULL; words++)
    if (strcmp(text, *words) == 0) return true;
  return false;
}

static const char *skip_sign(const char *text) {
  return *text == '-' || *text == '+' ? text + 1 : text;
}

static const char *skip_digits(const char *text) {
  while (*text >= '0' && *text <= '9') text++;
  return text;
}

/* The base of an integer and where its digits start; 0 for anything else. */
static int integer_base(const char *text, const char **digits) {
  bool octal = text[0] == '0' && text[1] == 'o', hexadecimal = text[0] == '0' && text[1] == 'x';
  *digits = octal || hexadecimal ? text + 2 : text;
  const char *first = octal || hexadecimal ? *digits : skip_sign(text);
  const char *end = first;
  if (hexadecimal)
    end += strspn(first, "0123456789abcdefABCDEF");
  else if (octal)
    end += strspn(first, "01234567");
  else
    end = skip_digits(first);
  if (end == first || *end != '\0') return 0;
  return hexadecimal ? 16 : octal ? 8 : 10;
}

/* [-+]? ( \. [0-9]+ | [0-9]+ ( \. [0-9]* )? ) ( [eE] [-+]? [0-9]+ )? */
static bool is_decimal(const char *text) {
  const char *start = skip_sign(text), *at = skip_digits(start);
  bool digits = at > start;
  if (*at == '.') {
    const char *fraction = at + 1;
    at = skip_digits(fraction);
    digits = digits || at > fraction;
  }
  if (!digits) return false;
  if (*at == 'e' || *at == 'E') {
    const char *exponent = skip_sign(at + 1);
    at = skip_digits(exponent);
    if (at == exponent) return false;
  }
  return *at == '\0';
}

static void set_integer(struct spec_node *node, const char *digits, int base) {
  node->kind = SPEC_INT;
  errno = 0;
  node->integer = strtoll(digits, NULL, base);
  node->wide = errno == ERANGE;
  if (!node->wide)
    node->real = (double)node->integer;
  else if (base == 10)
    node->real = strtod(digits, NULL);
  else
    node->real = HUGE_VAL; /* far beyond any range of the schema, and exactly how far matters to nobody */
}

static void set_real(struct spec_node *node, double value) {
  node->kind = SPEC_REAL;
  node->real = value;
}

void scalar_resolve(struct spec_node *node) {
  static const char *const nulls[] = {"", "~", "null", "Null", "NULL", NULL};
  static const char *const truths[] = {"true", "True", "TRUE", NULL};
  static const char *const falsehoods[] = {"false", "False", "FALSE", NULL};
  static const char *const infinities[] = {".inf", ".Inf", ".INF", NULL};
  static const char *const nans[] = {".nan", ".NaN", ".NAN", NULL};
  const char *text = node->text, *digits;
  int base;
  node->kind = SPEC_STRING;
  if (strlen(text) != node->length) return;
  if (one_of(text, nulls))
    node->kind = SPEC_NULL;
  else if (one_of(text, truths) || one_of(text, falsehoods)) {
    node->kind = SPEC_BOOL;
    node->integer = one_of(text, truths);
  } else if ((base = integer_base(text, &digits)) != 0)
    set_integer(node, digits, base);
  else if (is_decimal(text))
    set_real(node, strtod(text, NULL));
  else if (one_of(skip_sign(text), infinities))
    set_real(node, *text == '-' ? -HUGE_VAL : HUGE_VAL);
  else if (one_of(text, nans))
    set_real(node, (double)NAN);
}
