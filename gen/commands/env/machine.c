/* The machine: its system, processors and memory, from /proc and /sys. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "gen/base/control_group.h"
#include "gen/base/system_file.h"
#include "gen/base/text.h"
#include "gen/commands/env/facts.h"

json_t *facts_system(struct arena *arena) {
  struct utsname name;
  json_t *system = json_object();
  if (uname(&name) == 0) {
    facts_put(system, "kernel", arena_printf(arena, "%s %s", name.sysname, name.release));
    facts_put(system, "machine", name.machine);
  }
  facts_put(system, "distribution", system_value(arena, system_file(arena, "/etc/os-release"), "PRETTY_NAME"));
  return system;
}

/* ---- Processors ---- */

/* The instruction sets that kernels and libraries differ by. */
static const char *instruction_sets(struct arena *arena) {
  static const char *const sets[] = {"sse4_2",   "avx",      "f16c",     "fma",         "avx2",        "avx_vnni",
                                     "avx512f",  "avx512bw", "avx512vl", "avx512_vnni", "avx512_bf16", "avx512_fp16",
                                     "amx_tile", "amx_int8", "amx_bf16", "asimd",       "asimdhp",     "asimddp",
                                     "sve",      "sve2",     "bf16",     "i8mm",        "vsx",         "v"};
  const char *flags = system_processor_flags(arena);
  struct text found = text_in(arena);
  for (size_t i = 0; i < sizeof sets / sizeof *sets; i++)
    if (text_names(flags, sets[i], false)) text_printf(&found, "%s%s", found.length > 0 ? " " : "", sets[i]);
  return text_string(&found);
}

/* Cores, as pairs of a package and a core in it that differ; 0 where the system does not report them. */
static int count_cores(struct arena *arena, int threads) {
  struct text seen = text_in(arena);
  int count = 0;
  text_puts(&seen, " ");
  for (int i = 0; i < threads; i++) {
    const char *folder = arena_printf(arena, "/sys/devices/system/cpu/cpu%d/topology", i);
    const char *package = system_file(arena, arena_printf(arena, "%s/physical_package_id", folder));
    const char *core = system_file(arena, arena_printf(arena, "%s/core_id", folder));
    if (package == NULL || core == NULL) continue;
    const char *name = arena_printf(arena, "%s:%s", package, core);
    if (text_names(text_string(&seen), name, false)) continue;
    text_printf(&seen, "%s ", name);
    count++;
  }
  return count;
}

static void put_nodes(struct arena *arena, json_t *processor) {
  const char *online = system_file(arena, "/sys/devices/system/node/online");
  json_t *nodes = json_object();
  for (int i = 0; online != NULL && i < 1024; i++) {
    const char *folder = arena_printf(arena, "/sys/devices/system/node/node%d", i);
    const char *processors = system_file(arena, arena_printf(arena, "%s/cpulist", folder));
    if (processors == NULL) continue;
    facts_put(nodes, arena_printf(arena, "node %d", i), arena_printf(arena, "processors %s", processors));
  }
  if (json_object_size(nodes) > 0) json_object_set(processor, "numa", nodes);
  json_decref(nodes);
}

json_t *facts_processor(struct arena *arena) {
  const char *cpuinfo = system_file(arena, "/proc/cpuinfo");
  json_t *processor = json_object();
  const char *model = system_value(arena, cpuinfo, "model name");
  facts_put(processor, "model", model != NULL ? model : system_value(arena, cpuinfo, "CPU part"));
  facts_put(processor, "instruction_sets", instruction_sets(arena));
  int threads = (int)sysconf(_SC_NPROCESSORS_ONLN), cores = count_cores(arena, (int)sysconf(_SC_NPROCESSORS_CONF));
  if (cores > 0) json_object_set_new(processor, "cores", json_integer(cores));
  json_object_set_new(processor, "threads", json_integer(threads));
  facts_put(processor, "allowed_processors",
            system_value(arena, system_file(arena, "/proc/self/status"), "Cpus_allowed_list"));
  double limit = control_group_limit(arena, "cpu.max", NULL, NULL);
  if (limit > 0) json_object_set_new(processor, "cgroup_limit", json_real(limit));
  put_nodes(arena, processor);
  return processor;
}

/* ---- Memory ---- */

/* A line of /proc/meminfo, in bytes. */
static void put_bytes(struct arena *arena, json_t *memory, const char *key, double bytes) {
  if (bytes <= 0) return;
  json_object_set_new(memory, arena_printf(arena, "%s_bytes", key), json_integer((json_int_t)bytes));
}

json_t *facts_memory(struct arena *arena) {
  static const char *const lines[][2] = {
      {"total", "MemTotal"}, {"available", "MemAvailable"}, {"swap", "SwapTotal"}, {"huge_pages", "Hugetlb"}};
  const char *text = system_file(arena, "/proc/meminfo");
  json_t *memory = json_object();
  for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
    const char *value = system_value(arena, text, lines[i][1]);
    put_bytes(arena, memory, lines[i][0], value != NULL ? strtod(value, NULL) * 1024 : 0);
  }
  put_bytes(arena, memory, "cgroup_limit", control_group_limit(arena, "memory.max", "memory", "memory.limit_in_bytes"));
  return memory;
}
