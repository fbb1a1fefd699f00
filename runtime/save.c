#include "save.h"

#include "files.h"
#include "safetensors.h"

bool rt_save_as(const struct accel_run *run, const char *name, const void *weights, struct problem *problem) {
  char path[4096];
  return rt_join(path, sizeof path, run->project_dir, name, problem) &&
         rt_safetensors_write(path, run->program->tensors, run->program->n_tensors, weights, problem);
}

bool rt_save(const struct accel_run *run, struct problem *problem) {
  if (run->weights == NULL) return true;
  return rt_save_as(run, "model.safetensors", run->weights, problem) &&
         (run->averages == NULL || rt_save_as(run, "ema.safetensors", run->averages, problem));
}
