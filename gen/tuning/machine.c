#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gen/base/sha256.h"
#include "gen/base/system_file.h"
#include "gen/tuning/tuning.h"

struct tuned_machine tuning_machine(struct arena *arena) {
  const char *text = system_file(arena, "/proc/cpuinfo");
  const char *const names[][4] = {{"model name", "cpu family", "model", "stepping"},
                                  {"CPU implementer", "CPU architecture", "CPU part", "CPU revision"}};
  struct tuned_machine machine = {.processor = "unknown", .cores = sysconf(_SC_NPROCESSORS_ONLN)};
  for (int i = 0; i < 2; i++) {
    const char *first = system_value(arena, text, names[i][0]), *family = system_value(arena, text, names[i][1]);
    const char *model = system_value(arena, text, names[i][2]), *stepping = system_value(arena, text, names[i][3]);
    if (first == NULL || family == NULL || model == NULL || stepping == NULL) continue;
    machine.processor = arena_printf(arena, "%s (family %s, model %s, stepping %s)", first, family, model, stepping);
    break;
  }
  return machine;
}

const char *tuning_path(struct arena *arena, const struct tuned_machine *machine) {
  const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
  char hex[65];
  const char *words = arena_printf(arena, "%s, %lld", machine->processor, (long long)machine->cores);
  sha256_of(words, strlen(words), hex);
  if (cache != NULL && cache[0] == '/') return arena_printf(arena, "%s/accel-gen/tuning-%.16s.json", cache, hex);
  return home == NULL || home[0] != '/' ? NULL
                                        : arena_printf(arena, "%s/.cache/accel-gen/tuning-%.16s.json", home, hex);
}
