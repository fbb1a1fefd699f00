#include "gen/commands/generate/xla_memory.h"

static bool measure(struct xla *xla, const char *module, int devices, struct xla_memory *memory,
                    struct problem *problem) {
  struct xla_program *program;
  if (!rt_xla_compile(xla, module, devices, NULL, &program, problem)) return false;
  const bool good = rt_xla_memory(program, memory, problem);
  rt_xla_discard(program);
  return good;
}

bool xla_memory_of(struct arena *arena, const char *kind, const char *module, int devices, struct xla_memory *memory,
                   const char **platform, struct problem *problem) {
  char path[4096];
  struct xla *xla;
  if (!rt_xla_find(kind, path, sizeof path, problem) || !rt_xla_open(path, devices, &xla, problem)) return false;
  *platform = arena_string(arena, rt_xla_facts(xla).platform);
  const bool good = measure(xla, module, devices, memory, problem);
  rt_xla_close(xla);
  return good;
}
