#define PCRE2_CODE_UNIT_WIDTH 8
#include "gen/tokenizer/split.h"

#include <pcre2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A class that PCRE2 has otherwise than Oniguruma and Unicode: white space without U+180E, and characters of words. */
static const char *class_of(char letter) {
  switch (letter) {
  case 's':
  case 'S':
    return "\\t-\\r\\x{85}\\p{Z}";
  case 'w':
  case 'W':
    return "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}";
  default:
    return NULL;
  }
}

/* The expression with those classes written out. \S and \W inside of brackets stay. The caller's memory; NULL without
 * any. */
static char *with_classes(const char *expression) {
  enum { LONGEST = 40 };
  char *copy = malloc(strlen(expression) * LONGEST + 1), *out = copy;
  bool in_class = false;
  for (const char *c = expression; copy != NULL && *c != '\0'; c++) {
    bool escaped = c[0] == '\\' && c[1] != '\0', negated = escaped && (c[1] == 'S' || c[1] == 'W');
    const char *inside = escaped && !(negated && in_class) ? class_of(c[1]) : NULL;
    if (inside != NULL) {
      out += sprintf(out, in_class ? "%s%s" : negated ? "[^%s%s]" : "[%s%s]", "", inside);
      c++;
      continue;
    }
    if (!escaped && *c == '[') in_class = true;
    if (!escaped && *c == ']') in_class = false;
    *out++ = *c;
    if (escaped) *out++ = *++c;
  }
  if (copy != NULL) *out = '\0';
  return copy;
}

void *split_compile(const char *expression, char *error, size_t size) {
  int code = PCRE2_ERROR_NOMEMORY;
  PCRE2_SIZE at = 0;
  PCRE2_UCHAR message[160];
  pcre2_code *compiled = NULL;
  char *own = with_classes(expression);
  if (own != NULL)
    compiled = pcre2_compile((PCRE2_SPTR)own, PCRE2_ZERO_TERMINATED, PCRE2_UTF | PCRE2_UCP, &code, &at, NULL);
  free(own);
  if (compiled != NULL) {
    (void)pcre2_jit_compile(compiled, PCRE2_JIT_COMPLETE); /* without it, it is slower */
    return compiled;
  }
  pcre2_get_error_message(code, message, sizeof message);
  snprintf(error, size, "%s", (const char *)message);
  return NULL;
}

bool splitter_add(struct splitter *splitter, const char *expression, enum split_behavior behavior, bool inverted,
                  char *error, size_t size) {
  if (splitter->count == SPLIT_MOST) return snprintf(error, size, "more than %d splits", SPLIT_MOST), false;
  void *code = split_compile(expression, error, size);
  if (code != NULL) splitter->splits[splitter->count++] = (struct split){code, behavior, inverted};
  return code != NULL;
}

void splitter_free(struct splitter *splitter) {
  for (int i = 0; i < splitter->count; i++) pcre2_code_free(splitter->splits[i].code);
  *splitter = (struct splitter){0};
}

/* ---- Pieces ---- */

/* The match that begins at `at` in the piece of a level, or what is before the next one: its end, and whether it counts
 * as a match. */
static size_t element(const struct splitting *splitting, int level, size_t at, bool *matches) {
  const struct split *split = &splitting->splitter->splits[level];
  size_t from = splitting->levels[level].from, to = splitting->levels[level].to;
  int found = pcre2_match(split->code, (PCRE2_SPTR)splitting->text + from, to - from, at - from,
                          PCRE2_NO_UTF_CHECK | PCRE2_NOTEMPTY, splitting->match, NULL);
  *matches = split->inverted;
  if (found < 0) return to; /* none is left, or it would take too long to say */
  const PCRE2_SIZE *ends = pcre2_get_ovector_pointer(splitting->match);
  if (ends[0] > at - from) return from + ends[0];
  *matches = !split->inverted;
  return from + ends[1];
}

/* Where the next piece of a level begins, from `at` on: what is removed is passed over. */
static size_t piece_begin(const struct splitting *splitting, int level, size_t at) {
  size_t to = splitting->levels[level].to;
  if (level >= splitting->splitter->count || splitting->splitter->splits[level].behavior != SPLIT_REMOVED) return at;
  bool matches = true;
  for (size_t end; at < to; at = end) {
    end = element(splitting, level, at, &matches);
    if (!matches) break;
  }
  return at;
}

/* The end of the piece that begins where a level is. */
static size_t piece_end(const struct splitting *splitting, int level) {
  size_t to = splitting->levels[level].to;
  if (level >= splitting->splitter->count) return to;
  enum split_behavior behavior = splitting->splitter->splits[level].behavior;
  bool matches, next_matches;
  size_t end = element(splitting, level, splitting->levels[level].at, &matches);
  if (behavior == SPLIT_ISOLATED || behavior == SPLIT_REMOVED) return end;
  for (size_t next; end < to; end = next) {
    next = element(splitting, level, end, &next_matches);
    bool joins = behavior == SPLIT_CONTIGUOUS             ? matches == next_matches
                 : behavior == SPLIT_MERGED_WITH_PREVIOUS ? !matches && next_matches
                                                          : matches && !next_matches;
    if (!joins) break;
    if (behavior != SPLIT_CONTIGUOUS) return next;
  }
  return end;
}

void splitting_begin(struct splitting *splitting, const struct splitter *splitter, void *match, const char *text,
                     size_t size, size_t done) {
  *splitting = (struct splitting){.splitter = splitter, .match = match, .text = text};
  splitting->levels[0].to = size;
  splitting->levels[0].at = splitting->done = piece_begin(splitting, 0, done);
}

bool splitting_may_stop(const struct splitting *splitting) {
  return splitting->done == splitting->levels[0].at;
}

bool splitting_next(struct splitting *splitting, size_t *from, size_t *to) {
  for (;;) {
    int level = splitting->level;
    if (splitting->levels[level].at == splitting->levels[level].to) {
      if (level == 0) return false;
      splitting->level--;
      continue;
    }
    *from = splitting->levels[level].at;
    *to = piece_end(splitting, level);
    splitting->levels[level].at = piece_begin(splitting, level, *to);
    if (level + 1 >= splitting->splitter->count) break;
    splitting->level++;
    splitting->levels[level + 1].from = *from;
    splitting->levels[level + 1].to = *to;
    splitting->levels[level + 1].at = piece_begin(splitting, level + 1, *from);
  }
  bool between = true; /* no level below the first is inside of a piece */
  for (int i = 1; i <= splitting->level; i++) between &= splitting->levels[i].at == splitting->levels[i].to;
  if (between) splitting->done = splitting->levels[0].at;
  return true;
}
