/* Match: patterns over the names of parameters. */
#ifndef ACCEL_PROGRAM_MATCH_H
#define ACCEL_PROGRAM_MATCH_H

#include <stdbool.h>

#include "gen/base/arena.h"
#include "gen/base/diag.h"

struct name_list {
  const char **items;
  int count, capacity;
};

/* Whether a name matches: the whole of it, where * matches any text and ? one character; or, of a pattern that begins
 * with "re:", any part of it by the POSIX extended regular expression that follows. */
bool name_matches(const char *match, const char *name);

/* Reports an error at `where` when the pattern's regular expression is none. */
void name_pattern_check(const char *match, struct location where, struct diagnostics *diags);

/* Reports that a pattern matches none of these names, with the nearest one. */
void name_pattern_unmatched(struct arena *arena, const char *match, const struct name_list *names,
                            struct location where, struct diagnostics *diags);

#endif
