#define _GNU_SOURCE /* sched_getaffinity */
#include "gen/commands/cli/machine.h"

#include <dirent.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gen/base/control_group.h"
#include "gen/base/system_file.h"
#include "gen/base/text.h"
#include "gen/commands/cli/process.h"

static int64_t count_processors(void) {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) return CPU_COUNT(&set);
  return sysconf(_SC_NPROCESSORS_ONLN);
}

static bool multiplies_bf16(struct arena *arena) {
  static const char *const names[] = {"avx512_bf16", "amx_bf16", "bf16"};
  const char *flags = system_processor_flags(arena);
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (text_names(flags, names[i], false)) return true;
  return false;
}

/* ---- GPUs ---- */

static bool is_on_path(struct arena *arena, const char *program) {
  for (const char *at = environment("PATH", ""); *at != '\0'; at += *at == ':') {
    size_t length = strcspn(at, ":");
    if (access(arena_printf(arena, "%.*s/%s", (int)length, at, program), X_OK) == 0) return true;
    at += length;
  }
  return false;
}

/* A line of nvidia-smi: "NVIDIA H100 80GB HBM3, 81559, 9.0", the memory in MiB and the compute capability. */
static void add_gpu(struct arena *arena, struct machine *machine, const char *line) {
  const char *memory = strchr(line, ','), *capability = memory != NULL ? strchr(memory + 1, ',') : NULL;
  if (capability == NULL) return;
  const int64_t bytes = strtoll(memory + 1, NULL, 10) << 20;
  const bool bf16 = strtod(capability + 1, NULL) >= 8;
  if (machine->gpus.count++ == 0) {
    machine->gpus.name = arena_copy(arena, line, (size_t)(memory - line));
    machine->gpus.memory = bytes;
    machine->gpus.bf16 = bf16;
  }
  if (bytes < machine->gpus.memory) machine->gpus.memory = bytes;
  machine->gpus.bf16 &= bf16;
}

static void find_gpus(struct arena *arena, struct machine *machine) {
  struct words command = words_in(arena);
  if (!is_on_path(arena, "nvidia-smi")) return;
  words_split(&command, "nvidia-smi --query-gpu=name,memory.total,compute_cap --format=csv,noheader,nounits");
  const char *text = process_read(&command);
  for (const char *line = text; line != NULL && *line != '\0';) {
    size_t length = strcspn(line, "\n");
    add_gpu(arena, machine, arena_copy(arena, line, length));
    line += length + (line[length] == '\n');
  }
}

/* ---- Network ---- */

/* The system says megabits a second, and -1 for an interface without a speed. */
static double fastest_interface(struct arena *arena) {
  static const char folder[] = "/sys/class/net";
  DIR *entries = opendir(folder);
  double fastest = 0;
  for (struct dirent *entry; entries != NULL && (entry = readdir(entries)) != NULL;) {
    FILE *file = fopen(arena_printf(arena, "%s/%s/speed", folder, entry->d_name), "r");
    double speed = 0;
    if (file == NULL) continue;
    if (fscanf(file, "%lf", &speed) == 1 && speed > fastest) fastest = speed;
    fclose(file);
  }
  if (entries != NULL) closedir(entries);
  return fastest / 8;
}

static int64_t available_memory(struct arena *arena) {
  const char *text = system_value(arena, system_file(arena, "/proc/meminfo"), "MemAvailable");
  const double system = text != NULL ? strtod(text, NULL) * 1024 : 0,
               group = control_group_limit(arena, "memory.max", "memory", "memory.limit_in_bytes");
  return (int64_t)(group > 0 && (system == 0 || group < system) ? group : system);
}

struct machine machine_at_hand(struct arena *arena) {
  struct machine machine = {.processors = count_processors(),
                            .memory = (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE),
                            .available = available_memory(arena),
                            .bf16 = multiplies_bf16(arena),
                            .network = fastest_interface(arena)};
  if (machine.memory < 0) machine.memory = 0;
  find_gpus(arena, &machine);
  return machine;
}
