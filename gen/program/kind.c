#include <string.h>

#include "gen/program/program.h"

static const char *const names[PROGRAM_KINDS] = {"train", "evaluate", "generate"};

const char *program_kind_name(enum program_kind kind) {
  return names[kind];
}

bool program_kind_find(const char *name, enum program_kind *kind) {
  for (*kind = 0; *kind < PROGRAM_KINDS; ++*kind)
    if (strcmp(names[*kind], name) == 0) return true;
  return false;
}
