#include "gen/spec/pattern.h"

#include <stdlib.h>
#include <string.h>

struct class {
  bool has[256];
};

/* One character of a class, as written or as \xHH. */
static unsigned char read_character(const char **at) {
  if (strncmp(*at, "\\x", 2) == 0 && strlen(*at) >= 4) {
    char digits[3] = {(*at)[2], (*at)[3], '\0'};
    *at += 4;
    return (unsigned char)strtoul(digits, NULL, 16);
  }
  return (unsigned char)*(*at)++;
}

/* The class that starts at `at`; what follows it, or NULL when it is none. */
static const char *read_class(const char *at, struct class *class) {
  memset(class, 0, sizeof *class);
  if (*at++ != '[') return NULL;
  bool negated = *at == '^';
  if (negated) at++;
  while (*at != ']' && *at != '\0') {
    unsigned first = read_character(&at), last = first;
    if (*at == '-' && at[1] != ']' && at[1] != '\0') {
      at++;
      last = read_character(&at);
    }
    for (unsigned c = first; c <= last; c++) class->has[c] = true;
  }
  for (int c = 0; c < 256 && negated; c++) class->has[c] = !class->has[c];
  return *at == ']' ? at + 1 : NULL;
}

bool pattern_matches(const char *pattern, const char *text, size_t length) {
  const unsigned char *at = (const unsigned char *)text, *end = at + length;
  if (*pattern++ != '^') return false;
  while (*pattern != '$') {
    struct class class;
    pattern = read_class(pattern, &class);
    if (pattern == NULL) return false;
    bool repeats = *pattern == '*' || *pattern == '+';
    if (*pattern != '*' && (at == end || !class.has[*at++])) return false;
    while (repeats && at < end && class.has[*at]) at++;
    if (repeats) pattern++;
  }
  return at == end;
}
