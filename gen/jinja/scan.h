/* Scanners of small things in text: whitespace, names, numbers, escapes. */
#ifndef ACCEL_JINJA_SCAN_H
#define ACCEL_JINJA_SCAN_H

#include "gen/jinja/value.h"

struct number {
  size_t length;
  bool real, overflow;
  int64_t as_int; /* INT64_MIN for its magnitude, which is an integer only after a minus sign */
  double as_double;
};

/* Length of the whitespace at the start, in bytes (Python's notion of whitespace). */
size_t jj_scan_space(const char *bytes, size_t length);

/* Length of the one whitespace character that ends the bytes, or 0. */
size_t jj_scan_space_before(const char *bytes, size_t length);

/* Length of the identifier at the start, or 0. */
size_t jj_scan_name(const char *bytes, size_t length);

/* The number literal at the start; a float only where `may_be_real`. */
struct number jj_scan_number(const char *bytes, size_t length, bool may_be_real);

/* A string literal's inside with its escapes read as Python's "unicode-escape" does. False for a malformed escape. */
bool jj_scan_unescape(struct pool *pool, const char *bytes, size_t length, struct jinja_value *out);

#endif
