#include "gen/program/match.h"

#include <regex.h>
#include <string.h>

static int least(int a, int b) {
  return a < b ? a : b;
}

/* The characters to put in, take out or change so that the name matches. */
static int distance(struct arena *arena, const char *match, const char *name) {
  size_t length = strlen(name);
  int *costs =
      arena_alloc(arena, (length + 1) * sizeof *costs); /* of the match so far, by length of the name's start */
  for (size_t j = 0; j <= length; j++) costs[j] = (int)j;
  for (; *match != '\0'; match++) {
    int corner = costs[0];
    bool any = *match == '*';
    if (!any) costs[0]++;
    for (size_t j = 1; j <= length; j++) {
      int above = costs[j], same = *match == '?' || *match == name[j - 1];
      costs[j] = any ? least(above, costs[j - 1]) : least(corner + !same, least(above, costs[j - 1]) + 1);
      corner = above;
    }
  }
  return costs[length];
}

static bool matches_glob(const char *match, const char *name) {
  const char *star = NULL, *reached = NULL; /* the newest *, and how far its text reaches */
  while (*name != '\0') {
    if (*match == '*') {
      star = match++;
      reached = name;
    } else if (*match == '?' || *match == *name) {
      match++;
      name++;
    } else if (star != NULL) {
      match = star + 1;
      name = ++reached;
    } else {
      return false;
    }
  }
  while (*match == '*') match++;
  return *match == '\0';
}

/* The regular expression of a pattern; NULL where it is none of these. */
static const char *expression_of(const char *match) {
  return strncmp(match, "re:", 3) == 0 ? match + 3 : NULL;
}

bool name_matches(const char *match, const char *name) {
  const char *expression = expression_of(match);
  regex_t regex;
  if (expression == NULL) return matches_glob(match, name);
  if (regcomp(&regex, expression, REG_EXTENDED | REG_NOSUB) != 0) return false;
  bool found = regexec(&regex, name, 0, NULL, 0) == 0;
  regfree(&regex);
  return found;
}

void name_pattern_check(const char *match, struct location where, struct diagnostics *diags) {
  const char *expression = expression_of(match);
  regex_t regex;
  char why[128];
  if (expression == NULL) return;
  int code = regcomp(&regex, expression, REG_EXTENDED | REG_NOSUB);
  if (code == 0) {
    regfree(&regex);
    return;
  }
  regerror(code, &regex, why, sizeof why);
  diag_error(diags, where, "'%s' is not a regular expression: %s", expression, why);
}

void name_pattern_unmatched(struct arena *arena, const char *match, const struct name_list *names,
                            struct location where, struct diagnostics *diags) {
  const char *nearest = NULL;
  int lowest = 0;
  diag_error(diags, where, "'%s' matches the name of no parameter", match);
  for (int i = 0; i < names->count; i++) {
    int cost = distance(arena, match, names->items[i]);
    if (nearest != NULL && cost >= lowest) continue;
    nearest = names->items[i];
    lowest = cost;
  }
  if (nearest != NULL) diag_help(diags, "the nearest one is '%s'", nearest);
}
