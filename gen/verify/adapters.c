#include "gen/verify/adapters.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "gen/verify/rules/rules.h"

/* By the last names of the module's path, or by a pattern over the whole of it. */
static bool names(const char *target, const char *module) {
  const size_t length = strlen(module), tail = strlen(target);
  const bool ends = length > tail && module[length - tail - 1] == '.' && strcmp(module + length - tail, target) == 0;
  return ends || rule_matches(target, module);
}

bool reading_adapts(const struct job *job, const char *module) {
  bool found = false;
  for (int i = 0; job->model.lora.rank > 0 && i < job->model.lora.n_targets; i++)
    found = found || names(job->model.lora.targets[i].name, module);
  return found;
}

double reading_adapter_scale(const struct job *job) {
  const double rank = (double)job->model.lora.rank;
  return job->model.lora.alpha / (job->model.lora.use_rslora ? sqrt(rank) : rank);
}

bool reading_trains(const struct job *job, const char *parameter) {
  char module[1024];
  const char *last = strrchr(parameter, '.');
  bool trains =
      job->model.lora.rank == 0 || strstr(parameter, ".lora_A.") != NULL || strstr(parameter, ".lora_B.") != NULL;
  snprintf(module, sizeof module, "%.*s", last != NULL ? (int)(last - parameter) : 0, parameter);
  for (int i = 0; i < job->model.lora.n_modules_to_save; i++)
    trains = trains || names(job->model.lora.modules_to_save[i].name, module);
  for (int i = 0; i < job->model.n_freeze; i++) trains = trains && !rule_matches(job->model.freeze[i].name, parameter);
  return trains;
}
