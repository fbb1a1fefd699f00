#include "gen/commands/data/shard_names.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST = 1000000, DIGITS = 9 };

/* A range in a pattern: {FIRST..LAST}. */
struct range {
  const char *open, *after; /* the brace, and what follows the other one */
  int first, last, width;   /* width: digits of a number, with zeros before it */
};

/* A number of at most DIGITS digits, after which *at is. */
static bool read_number(const char **at, int *number, int *width) {
  const size_t length = strspn(*at, "0123456789");
  if (length == 0 || length > DIGITS) return false;
  *number = atoi(*at);
  if (**at == '0' && (int)length > *width) *width = (int)length;
  *at += length;
  return true;
}

/* The first range of a pattern. */
static bool find_range(const char *pattern, struct range *range) {
  for (const char *open = pattern; (open = strchr(open, '{')) != NULL; open++) {
    const char *at = open + 1;
    *range = (struct range){.open = open};
    if (!read_number(&at, &range->first, &range->width) || strncmp(at, "..", 2) != 0) continue;
    at += 2;
    if (!read_number(&at, &range->last, &range->width) || *at != '}') continue;
    range->after = at + 1;
    return true;
  }
  return false;
}

bool shard_names_add(struct shard_names *names, struct arena *arena, const char *pattern, struct problem *problem) {
  struct range range;
  if (access(pattern, F_OK) == 0 || !find_range(pattern, &range)) {
    ARENA_PUSH(arena, *names, pattern);
    return true;
  }
  if (range.last < range.first) {
    rt_problem(problem, "%s: the range ends with a number below its first", pattern);
    return rt_help(problem, "write it as {%d..%d}", range.last, range.first);
  }
  for (int i = range.first; i <= range.last; i++) {
    if (names->count >= MOST) return rt_problem(problem, "%s: more than %d files", pattern, MOST);
    const char *name =
        arena_printf(arena, "%.*s%0*d%s", (int)(range.open - pattern), pattern, range.width, i, range.after);
    if (!shard_names_add(names, arena, name, problem)) return false;
  }
  return true;
}
