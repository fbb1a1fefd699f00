#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gen/base/file.h"
#include "gen/base/sha256.h"
#include "gen/tuning/tuning.h"

/* What /proc/cpuinfo says of the first processor under a name; NULL when it says nothing. */
static const char *said(struct arena *arena, const char *text, const char *name) {
  size_t length = strlen(name);
  for (const char *line = text; line != NULL && *line != '\0'; line = strchr(line, '\n')) {
    line += *line == '\n';
    const char *at = line + length;
    if (strncmp(line, name, length) != 0) continue;
    at += strspn(at, " \t");
    if (*at != ':') continue;
    at += 1 + strspn(at + 1, " \t");
    return arena_copy(arena, at, strcspn(at, "\n"));
  }
  return NULL;
}

struct tuned_machine tuning_machine(struct arena *arena) {
  size_t length = 0;
  const char *text = read_bytes(arena, "/proc/cpuinfo", &length);
  const char *const names[][4] = {{"model name", "cpu family", "model", "stepping"},
                                  {"CPU implementer", "CPU architecture", "CPU part", "CPU revision"}};
  struct tuned_machine machine = {.processor = "unknown", .cores = sysconf(_SC_NPROCESSORS_ONLN)};
  for (int i = 0; i < 2 && text != NULL; i++) {
    const char *first = said(arena, text, names[i][0]), *family = said(arena, text, names[i][1]);
    const char *model = said(arena, text, names[i][2]), *stepping = said(arena, text, names[i][3]);
    if (first == NULL || family == NULL || model == NULL || stepping == NULL) continue;
    machine.processor = arena_printf(arena, "%s (family %s, model %s, stepping %s)", first, family, model, stepping);
    break;
  }
  return machine;
}

const char *tuning_path(struct arena *arena, const struct tuned_machine *machine) {
  const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
  char hex[65];
  struct sha256 sum = sha256_start();
  const char *words = arena_printf(arena, "%s, %lld", machine->processor, (long long)machine->cores);
  sha256_add(&sum, words, strlen(words));
  sha256_hex(&sum, hex);
  if (cache != NULL && cache[0] == '/') return arena_printf(arena, "%s/accel-gen/tuning-%.16s.json", cache, hex);
  return home == NULL || home[0] != '/' ? NULL
                                        : arena_printf(arena, "%s/.cache/accel-gen/tuning-%.16s.json", home, hex);
}
