/* Reads lines "VERSION<tab>RANGE"; prints for each whether the version is in the range: yes, no, or what is wrong. */
#include <stdio.h>
#include <string.h>

#include "gen/base/version.h"

int main(void) {
  char line[400];
  struct arena *arena = arena_new();
  while (fgets(line, sizeof line, stdin) != NULL) {
    line[strcspn(line, "\n")] = '\0';
    char *range = strchr(line, '\t');
    if (range == NULL) return 1;
    *range++ = '\0';
    const char *wrong;
    bool is_in = version_is_in(arena, line, range, &wrong);
    puts(wrong != NULL ? wrong : is_in ? "yes" : "no");
  }
  arena_free(arena);
  return 0;
}
