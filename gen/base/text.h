/* Text: a string that grows at its end, in an arena. */
#ifndef ACCEL_BASE_TEXT_H
#define ACCEL_BASE_TEXT_H

#include <stdbool.h>

#include "gen/base/arena.h"

struct text {
  struct arena *arena;
  char *bytes; /* NUL-terminated once anything was added; may hold NULs of its own */
  size_t length, capacity;
};

/* An empty text in `arena`. */
struct text text_in(struct arena *arena);

/* Adds `count` bytes. */
void text_add(struct text *text, const void *bytes, size_t count);

/* Adds a C string. */
void text_puts(struct text *text, const char *string);

/* printf at the end. */
void text_printf(struct text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Adds words in lines of at most `width` columns, broken at blanks; every line after the first begins with `indent`
 * blanks. column: where the first line begins. A newline in `words` ends a line, and none is added at the end.
 */
void text_fold(struct text *text, const char *words, int column, int indent, int width);

/* Whether `text` begins with `beginning`. */
bool text_begins(const char *text, const char *beginning);

/* Whether `word` is one of `words`, each between blanks: " a b "; in `any_case` or as it is written.
 * NULL has none, and "" is none. */
bool text_names(const char *words, const char *word, bool any_case);

/* Whether `name` is one of `names`, each between blanks; one that ends with a star, " a b* ", is also what begins so,
 * or without `any_rest` what stands before the star alone. */
bool text_lists(const char *names, const char *name, bool any_rest);

/* The whole as a C string; "" for an empty text. Owned by the arena. */
const char *text_string(const struct text *text);

#endif
