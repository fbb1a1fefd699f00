/* Early stopping: the run ends when its evaluations get no better. */
#include "include/accel/hooks.h"
#include "runtime/run/run.h"

#include "runtime/checkpoint/save.h"
#include "runtime/files/files.h"
#include "runtime/process/world.h"
#include "runtime/weights/weights.h"

#include <assert.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

/* What outlives a step, in the program's arena: sizeof is that of int32_t[4]. */
struct stopping {
  double best;
  int32_t known, failures; /* whether there is a best; evaluations since one was better by more than the threshold */
};
static_assert(sizeof(struct stopping) == sizeof(int32_t[4]), "as the program has it");

static double metric_of(const struct accel_run *run) {
  double value = run->eval_loss;
  const char *metric = run->program->stopping.metric;
  if (metric != NULL && !accel_metric(run, metric, &value)) value = NAN;
  return value;
}

/* The state file that mirrors what was evaluated. */
static const char *evaluated(const struct accel_run *run) {
  return run->program->stopping.averages ? "ema" : "model";
}

/* As the callback of Transformers decides: an evaluation that is not better by more than the threshold is a failure;
 * the best is the best of all, by however little. */
static bool note(struct stopping *stopping, const struct accel_stopping *rule, double value) {
  bool better = !stopping->known || (rule->greater ? value > stopping->best : value < stopping->best);
  bool counts = better && (!stopping->known || fabs(value - stopping->best) > rule->threshold);
  stopping->failures = counts ? 0 : stopping->failures + 1;
  if (better) stopping->best = value;
  stopping->known = true;
  return better;
}

void accel_stop_early(struct accel_run *run, int64_t at, int32_t state[4]) {
  const struct accel_stopping *rule = &run->program->stopping;
  struct stopping stopping;
  struct problem problem;
  memcpy(&stopping, state, sizeof stopping);
  bool better = note(&stopping, rule, metric_of(run));
  memcpy(state, &stopping, sizeof stopping);
  if (better && rule->restore_best && rt_is_main() && !rt_save_mirror(run, evaluated(run), "best", &problem))
    rt_fail(&problem, 1);
  if (stopping.failures < rule->patience) return;
  run->cadences.steps = at < run->cadences.steps ? at : run->cadences.steps;
  run->stopped_early = true;
}

/* One file, or the index of several. */
static bool find_best(const struct accel_run *run, char *path, size_t size, struct problem *problem) {
  return rt_join(path, size, run->project_dir, "best.safetensors", problem) &&
         (access(path, R_OK) == 0 || rt_join(path, size, run->project_dir, "best.safetensors.index.json", problem));
}

void accel_restore_best(struct accel_run *run, const int32_t state[4]) {
  char path[4096];
  struct stopping stopping;
  struct problem problem;
  void *weights = rt_mirror(run, evaluated(run));
  memcpy(&stopping, state, sizeof stopping);
  if (!rt_is_main()) return;                          /* it writes what the run leaves */
  if (!stopping.known || run->signal != NULL) return; /* what a signal ends goes on later, with the newest weights */
  if (!find_best(run, path, sizeof path, &problem) || !rt_weights_load(run->program, path, weights, &problem))
    rt_fail(&problem, 1);
  rt_save_weights(run);
}
