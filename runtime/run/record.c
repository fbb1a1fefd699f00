#include "runtime/run/record.h"

#include "runtime/checkpoint/keys.h"
#include "runtime/files/files.h"
#include "runtime/process/world.h"
#include "runtime/run/run.h"

#include <jansson.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

/* What follows the colon of the first line of /proc/cpuinfo that begins with `name`, in `value`; "" where none does. */
static void read_cpuinfo(const char *name, char *value, size_t size) {
  char line[512];
  FILE *file = fopen("/proc/cpuinfo", "r");
  value[0] = '\0';
  while (file != NULL && value[0] == '\0' && fgets(line, sizeof line, file) != NULL) {
    const char *colon = strchr(line, ':');
    if (colon == NULL || strncmp(line, name, strlen(name)) != 0) continue;
    colon += 1 + strspn(colon + 1, " \t");
    snprintf(value, size, "%.*s", (int)strcspn(colon, "\n"), colon);
  }
  if (file != NULL) fclose(file);
}

static json_t *machine_of(void) {
  char processor[256];
  struct utsname name;
  json_t *machine = json_object();
  if (uname(&name) == 0) {
    char system[2 * sizeof name.sysname + 2];
    snprintf(system, sizeof system, "%s %s", name.sysname, name.release);
    json_object_set_new(machine, "system", json_string(system));
    json_object_set_new(machine, "machine", json_string(name.machine));
  }
  read_cpuinfo("model name", processor, sizeof processor);
  if (processor[0] == '\0') read_cpuinfo("CPU part", processor, sizeof processor);
  if (processor[0] != '\0') json_object_set_new(machine, "processor", json_string(processor));
  json_object_set_new(machine, "logical_processors", json_integer(sysconf(_SC_NPROCESSORS_ONLN)));
  const json_int_t pages = sysconf(_SC_PHYS_PAGES), bytes = sysconf(_SC_PAGESIZE);
  if (pages > 0 && bytes > 0) json_object_set_new(machine, "memory_bytes", json_integer(pages * bytes));
  return machine;
}

static json_t *record_of(const struct accel_run *run) {
  const struct accel_program *program = run->program;
  json_t *record = rt_keys_json(program);
  json_object_set_new(record, "model", json_string(program->name));
  json_object_set_new(record, "summary", json_string(program->summary));
  json_object_set_new(record, "plan", json_string(program->plan));
  json_object_set_new(record, "began", json_integer(time(NULL)));
  json_object_set_new(record, "first_step", json_integer(run->first_step));
  json_object_set_new(record, "steps", json_integer(run->cadences.steps));
  json_object_set_new(record, "unit", json_string(program->sequence_length > 0 ? "token" : "row"));
  json_object_set_new(record, "units_per_step", json_real(rt_units_per_step(run)));
  if (program->matmul_flops > 0) json_object_set_new(record, "matmul_flops_per_step", json_real(program->matmul_flops));
  json_object_set_new(record, "ranks", json_integer(rt_world()->ranks));
  json_object_set_new(record, "threads", json_integer(omp_get_max_threads()));
  json_object_set_new(record, "arena_bytes", json_integer((json_int_t)program->arena_bytes));
  json_object_set_new(record, "device_bytes", json_integer((json_int_t)program->device_bytes));
  json_object_set_new(record, "machine", machine_of());
  return record;
}

bool rt_record_write(const struct accel_run *run, struct problem *problem) {
  char path[4096];
  json_t *record = record_of(run);
  char *text = json_dumps(record, JSON_INDENT(2));
  json_decref(record);
  if (text == NULL) return rt_problem(problem, "no memory for run.json");
  const bool good = rt_join(path, sizeof path, run->project_dir, "run.json", problem) &&
                    rt_write_file(path, BY_RENAME, text, strlen(text), NULL, problem);
  free(text);
  return good;
}
