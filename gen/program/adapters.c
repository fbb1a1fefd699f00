#include "gen/program/adapters.h"

#include "gen/base/path.h"
#include "gen/program/match.h"
#include <math.h>
#include <string.h>

const char adapter_a_ending[] = ".lora_A.weight";
static const char b_ending[] = ".lora_B.weight";

bool is_adapter(const char *name) {
  return has_ending(name, adapter_a_ending) || has_ending(name, b_ending);
}

double adapter_scale(const struct job *job) {
  double rank = job->model.lora.rank;
  return job->model.lora.alpha / (job->model.lora.use_rslora ? sqrt(rank) : rank);
}

bool names_module(const char *target, const char *module) {
  size_t length = strlen(module), tail = strlen(target);
  bool ends = length > tail && module[length - tail - 1] == '.' && strcmp(module + length - tail, target) == 0;
  return ends || name_matches(target, module);
}

bool is_saved_module(const struct job *job, const char *name) {
  const char *last = strrchr(name, '.');
  char module[1024];
  if (last == NULL || (size_t)(last - name) >= sizeof module) return false;
  memcpy(module, name, (size_t)(last - name));
  module[last - name] = '\0';
  for (int i = 0; i < job->model.lora.n_modules_to_save; i++)
    if (names_module(job->model.lora.modules_to_save[i].name, module)) return true;
  return false;
}
