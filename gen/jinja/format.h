/* Formatting: the printf style of "%" and the brace style of str.format. */
#ifndef ACCEL_JINJA_FORMAT_H
#define ACCEL_JINJA_FORMAT_H

#include "gen/jinja/tables.h"

/* A field of either style. */
struct spec {
  char fill[5]; /* one code point */
  char align;   /* '<', '>', '^', '=' or 0 */
  char sign;    /* '+', ' ' or '-' */
  bool alternate, comma, underscore;
  int64_t width;
  int precision; /* -1: none */
  char type;     /* 0: none */
};

/* Digits that a number may be formatted with; characters that a field may be. */
enum { MAX_DIGITS = 400, MAX_PRECISION = 1000000000 };

/* What a field makes of an integer (with that many digits at least), a real number, a text, a character by its code.
 * Numbers of more than MAX_DIGITS digits fail. */
void jj_format_int(struct run *run, const struct spec *spec, int64_t value, int digits_at_least);
void jj_format_real(struct run *run, const struct spec *spec, double value);
void jj_format_text(struct run *run, const struct spec *spec, struct jinja_value text);
void jj_format_code(struct run *run, const struct spec *spec, struct jinja_value value);

/* format % value, where value is a tuple of arguments, a map, or one argument. */
struct jinja_value jj_format_percent(struct run *run, struct jinja_value format, struct jinja_value value);

/* format.format(...). */
struct jinja_value jj_format_braces(struct run *run, struct jinja_value format, const struct call *call);

#endif
