/* Diagnostics: errors as values with a location, collected by every stage and printed together. */
#ifndef ACCEL_BASE_DIAG_H
#define ACCEL_BASE_DIAG_H

#include <stdbool.h>
#include <stdio.h>

#include "gen/base/arena.h"

/* A location in a source text. line and column count from 1; 0 means "the file as a whole". */
struct location {
  const char *file; /* as the user named it; NULL when there is no file */
  int line, column;
  int length; /* columns to underline; 0 for a bare caret */
};

enum severity { SEVERITY_ERROR, SEVERITY_WARNING, SEVERITY_NOTE, SEVERITY_HELP };

struct diagnostic {
  enum severity severity; /* a note or help belongs to the error or warning before it */
  struct location where;
  const char *message;
};

/* The collected diagnostics of one run. Not global: each command makes one. */
struct diagnostics {
  struct arena *arena;
  struct diagnostic *items;
  int count, capacity;
  int errors;
  struct source {
    const char *file, *text;
  } *sources;
  int n_sources, sources_capacity;
};

/* No diagnostics yet; texts live in `arena`. */
struct diagnostics diagnostics_in(struct arena *arena);

/* Makes a source's text known, so that its lines can be shown under a message. Both strings are referenced, not copied.
 */
void diag_add_source(struct diagnostics *diags, const char *file, const char *text);

/* Adds one diagnostic. */
void diag_error(struct diagnostics *diags, struct location where, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void diag_warning(struct diagnostics *diags, struct location where, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void diag_note(struct diagnostics *diags, struct location where, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void diag_help(struct diagnostics *diags, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The message of the first error, copied into `arena`; without one, that nothing was
 * reported. */
const char *diag_first_error(struct arena *arena, const struct diagnostics *diags);

/* Prints all, in the compiler's form, sorted by location within a file:
 *   job.yaml:9:3: error: …
 *       9 |   mixed_precision: bf61
 *         |                    ^~~~
 *       help: did you mean 'bf16'?
 * and closes with "1 error" or "N errors" when there are any. */
void diag_print(const struct diagnostics *diags, FILE *out, bool colour);

/* The candidate nearest to `word` by edit distance, in which case counts nothing, when near enough to be what was
 * meant; else NULL. candidates: `count` strings. */
const char *nearest_word(const char *word, const char *const *candidates, int count);

#endif
