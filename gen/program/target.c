#include "gen/program/target.h"

#include <string.h>

static const struct target *const targets[] = {
    [DEVICE_CPU] = &target_cpu, [DEVICE_CUDA] = &target_cuda,  [DEVICE_HIP] = &target_hip,  [DEVICE_XLA] = &target_xla,
    [DEVICE_TPU] = &target_xla, [DEVICE_NEURON] = &target_xla, [DEVICE_ROCM] = &target_xla, [DEVICE_XPU] = &target_xla};

enum { TARGETS = sizeof targets / sizeof *targets };

const struct target *target_of(const struct job *job) {
  return targets[job->devices.kind];
}

const struct target *target_host(void) {
  int host = 0;
  while (!targets[host]->is_host) host++;
  return targets[host];
}

static bool lists(const char *const *folders, const char *path) {
  for (int i = 0; folders[i] != NULL; i++)
    if (strncmp(path, folders[i], strlen(folders[i])) == 0) return true;
  return false;
}

int64_t target_processes(const struct job *job) {
  return target_of(job)->module != NULL ? 1 : job->devices.ranks;
}

int target_devices(const struct job *job) {
  return target_of(job)->module != NULL ? (int)job->devices.ranks : 1;
}

bool target_takes(const struct target *target, const char *path, bool several_ranks) {
  bool common = true;
  for (int i = 0; i < TARGETS; i++)
    common &= !lists(targets[i]->build.sources, path) && !lists(targets[i]->build.of_ranks, path);
  return common || lists(target->build.sources, path) || (several_ranks && lists(target->build.of_ranks, path));
}

enum dtype target_copies(const struct program *program) {
  return program->target->module == NULL ? program->bits16 : DTYPE_FLOAT32;
}

const char *target_matmuls(const struct program *program) {
  if (!dtype_is_bits16(program->bits16)) return "";
  return program->target->matmuls(program, dtype_name(program->bits16));
}
