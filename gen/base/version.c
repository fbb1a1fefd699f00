#include "gen/base/version.h"

#include <ctype.h>
#include <string.h>

enum order { LESS = -1, EQUAL, GREATER };
enum sign { AT_LEAST, AT_MOST, IS, IS_NOT, COMPATIBLE, ABOVE, BELOW };

/* Those of two characters first, which begin with one of the others. */
static const struct {
  const char *text;
  enum sign sign;
} signs[] = {{">=", AT_LEAST},   {"<=", AT_MOST}, {"==", IS},  {"!=", IS_NOT},
             {"~=", COMPATIBLE}, {">", ABOVE},    {"<", BELOW}};

/* A version, or the first numbers of one ("1.2" of "1.2.*"). */
struct numbers {
  const char *text;
  size_t length;
  int count;
  bool open; /* .* follows */
};

/* The number at *at of what is left, and the text after it and its dot: its digits without zeros before them. */
static const char *next_number(const char *at, const char *end, size_t *length) {
  const char *digits = at;
  while (at < end && *at != '.') at++;
  while (digits < at && *digits == '0') digits++;
  *length = (size_t)(at - digits);
  return digits;
}

/* Two numbers of any length. */
static enum order compare_digits(const char *a, size_t a_length, const char *b, size_t b_length) {
  if (a_length != b_length) return a_length < b_length ? LESS : GREATER;
  int difference = strncmp(a, b, a_length);
  return difference == 0 ? EQUAL : difference < 0 ? LESS : GREATER;
}

/* By the first `count` numbers of each. */
static enum order compare(const struct numbers *a, const struct numbers *b, int count) {
  const char *at[] = {a->text, b->text}, *end[] = {a->text + a->length, b->text + b->length};
  for (int i = 0; i < count; i++) {
    const char *digits[2];
    size_t length[2];
    for (int k = 0; k < 2; k++) {
      digits[k] = next_number(at[k], end[k], &length[k]);
      at[k] = digits[k] + length[k];
      if (at[k] < end[k]) at[k]++;
    }
    enum order order = compare_digits(digits[0], length[0], digits[1], length[1]);
    if (order != EQUAL) return order;
  }
  return EQUAL;
}

/* Numbers with a dot between each two, and perhaps .* after them. */
static bool read_numbers(const char *text, size_t length, struct numbers *numbers) {
  *numbers = (struct numbers){.text = text, .open = length > 2 && strncmp(text + length - 2, ".*", 2) == 0};
  numbers->length = numbers->open ? length - 2 : length;
  bool in_number = false;
  for (size_t i = 0; i < numbers->length; i++) {
    bool digit = isdigit((unsigned char)text[i]) != 0;
    if (!digit && (text[i] != '.' || !in_number)) return false;
    if (digit && !in_number) numbers->count++;
    in_number = digit;
  }
  return in_number;
}

static bool meets(const struct numbers *version, enum sign sign, const struct numbers *bound) {
  int all = version->count > bound->count ? version->count : bound->count;
  enum order order = compare(version, bound, bound->open ? bound->count : all);
  switch (sign) {
  case AT_LEAST:
    return order != LESS;
  case AT_MOST:
    return order != GREATER;
  case IS:
    return order == EQUAL;
  case IS_NOT:
    return order != EQUAL;
  case ABOVE:
    return order == GREATER;
  case BELOW:
    return order == LESS;
  case COMPATIBLE:
    return order != LESS && compare(version, bound, bound->count - 1) == EQUAL;
  }
  return false;
}

/* One condition, without blanks around it. */
static bool is_met(struct arena *arena, const struct numbers *version, const char *text, size_t length,
                   const char **wrong) {
  size_t i = 0, known = sizeof signs / sizeof *signs;
  while (i < known && strncmp(text, signs[i].text, strlen(signs[i].text)) != 0) i++;
  if (i == known) {
    *wrong = arena_printf(arena, "'%.*s' does not begin with >=, >, <=, <, ==, != or ~=", (int)length, text);
    return false;
  }
  size_t begin = strlen(signs[i].text);
  begin += strspn(text + begin, " \t");
  struct numbers bound;
  bool good = begin < length && read_numbers(text + begin, length - begin, &bound);
  enum sign sign = signs[i].sign;
  if (!good)
    *wrong = arena_printf(arena, "'%.*s' is not a version after %s: numbers with dots, such as 0.2",
                          (int)(length > begin ? length - begin : 0), text + begin, signs[i].text);
  else if (bound.open && sign != IS && sign != IS_NOT)
    *wrong = arena_printf(arena, "'.*' goes with == and !=, not with %s", signs[i].text);
  else if (sign == COMPATIBLE && bound.count < 2)
    *wrong = arena_printf(arena, "~= needs two numbers or more, such as ~=%.*s.0", (int)(length - begin), text + begin);
  return *wrong == NULL && meets(version, sign, &bound);
}

bool version_is_in(struct arena *arena, const char *version, const char *range, const char **wrong) {
  *wrong = NULL;
  struct numbers numbers;
  bool is_in = true;
  if (!read_numbers(version, strlen(version), &numbers) || numbers.open)
    *wrong = arena_printf(arena, "'%s' is not a version", version);
  for (const char *at = range; *wrong == NULL; at++) {
    at += strspn(at, " \t");
    size_t whole = strcspn(at, ","), length = whole;
    while (length > 0 && strchr(" \t", at[length - 1]) != NULL) length--;
    is_in = is_met(arena, &numbers, at, length, wrong) && is_in;
    at += whole;
    if (*at == '\0') break;
  }
  return is_in && *wrong == NULL;
}
