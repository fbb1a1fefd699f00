#define PCRE2_CODE_UNIT_WIDTH 8
#include "gen/tokenizer/split.h"

#include <pcre2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* \s and \S as Oniguruma and Unicode have them, by White_Space: PCRE's own also take U+180E. \S inside of brackets
 * stays. The caller's memory; NULL without any. */
static char *with_spaces(const char *expression) {
  static const char inside[] = "\\t-\\r\\x{85}\\p{Z}";
  char *copy = malloc(strlen(expression) * (sizeof inside + 4) + 1), *out = copy;
  bool in_class = false;
  for (const char *c = expression; copy != NULL && *c != '\0'; c++) {
    bool escaped = c[0] == '\\' && c[1] != '\0';
    if (escaped && (c[1] == 's' || (c[1] == 'S' && !in_class))) {
      out += sprintf(out, in_class ? "%s%s" : c[1] == 'S' ? "[^%s%s]" : "[%s%s]", "", inside);
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

bool splitter_add(struct splitter *splitter, const char *expression, char *error, size_t size) {
  int code = PCRE2_ERROR_NOMEMORY;
  PCRE2_SIZE at = 0;
  PCRE2_UCHAR message[160];
  pcre2_code *compiled = NULL;
  if (splitter->count == SPLIT_MOST) return snprintf(error, size, "more than %d splits", SPLIT_MOST), false;
  char *own = with_spaces(expression);
  if (own != NULL)
    compiled = pcre2_compile((PCRE2_SPTR)own, PCRE2_ZERO_TERMINATED, PCRE2_UTF | PCRE2_UCP, &code, &at, NULL);
  free(own);
  if (compiled != NULL) {
    (void)pcre2_jit_compile(compiled, PCRE2_JIT_COMPLETE); /* without it, it is slower */
    splitter->codes[splitter->count++] = compiled;
    if (splitter->match == NULL) splitter->match = pcre2_match_data_create(1, NULL);
    if (splitter->match != NULL) return true;
    code = PCRE2_ERROR_NOMEMORY;
  }
  pcre2_get_error_message(code, message, sizeof message);
  snprintf(error, size, "%s", (const char *)message);
  return false;
}

void splitter_free(struct splitter *splitter) {
  for (int i = 0; i < splitter->count; i++) pcre2_code_free(splitter->codes[i]);
  pcre2_match_data_free(splitter->match);
  *splitter = (struct splitter){0};
}

void splitting_begin(struct splitting *splitting, const char *text, size_t size, size_t done) {
  *splitting = (struct splitting){.text = text, .at = done, .done = done};
  splitting->levels[0].to = size;
  splitting->levels[0].at = done;
}

/* The piece of a level that begins where it is. */
static size_t piece_end(const struct splitting *splitting, const struct splitter *splitter, int level) {
  size_t from = splitting->levels[level].from, at = splitting->levels[level].at, to = splitting->levels[level].to;
  int found = pcre2_match(splitter->codes[level], (PCRE2_SPTR)splitting->text + from, to - from, at - from,
                          PCRE2_NO_UTF_CHECK | PCRE2_NOTEMPTY, splitter->match, NULL);
  if (found < 0) return to; /* none is left, or it would take too long to say */
  const PCRE2_SIZE *ends = pcre2_get_ovector_pointer(splitter->match);
  return from + (ends[0] > at - from ? ends[0] : ends[1]);
}

bool splitting_next(struct splitting *splitting, const struct splitter *splitter, size_t *from, size_t *to) {
  while (splitting->level >= 0 && splitting->levels[splitting->level].at == splitting->levels[splitting->level].to) {
    if (splitting->level == 0) return false;
    splitting->level--;
  }
  for (;; splitting->level++) {
    int level = splitting->level;
    *from = splitting->levels[level].at;
    *to = splitter->count > 0 ? piece_end(splitting, splitter, level) : splitting->levels[level].to;
    splitting->levels[level].at = *to;
    if (level + 1 >= splitter->count) break;
    splitting->levels[level + 1].from = splitting->levels[level + 1].at = *from;
    splitting->levels[level + 1].to = *to;
  }
  bool whole = true; /* no level below the first is inside of a piece */
  for (int i = 1; i <= splitting->level; i++) whole &= splitting->levels[i].at == splitting->levels[i].to;
  splitting->at = *to;
  if (whole) splitting->done = *to;
  return true;
}
