#include "runtime/run/stopping.h"

#include "runtime/process/fail.h"
#include "runtime/process/world.h"
#include "runtime/run/best.h"
#include "runtime/run/run.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

struct stopping rt_stopping_read(const int32_t state[4]) {
  struct stopping stopping;
  memcpy(&stopping, state, sizeof stopping);
  return stopping;
}

void rt_stopping_write(const struct stopping *stopping, int32_t state[4]) {
  memcpy(state, stopping, sizeof *stopping);
}

static double metric_of(const struct accel_run *run) {
  double value = run->reports.eval_loss;
  const char *metric = run->program->stopping.metric;
  if (metric != NULL && !accel_metric(run, metric, &value)) value = NAN;
  return value;
}

/* As the callback of Transformers decides: an evaluation that is not better by more than the threshold is a failure;
 * the best is the best of all, by however little. */
static bool note(struct stopping *stopping, const struct accel_stopping *rule, double value) {
  bool better = !stopping->known || (rule->greater ? value > stopping->best : value < stopping->best);
  bool counts = better && (!stopping->known || fabs(value - stopping->best) > rule->threshold);
  stopping->failures = counts ? 0 : stopping->failures + 1;
  if (better) stopping->best = value;
  if (stopping->known == 0) stopping->known = 1;
  return better;
}

/* Without a patience the best weights are kept, and no evaluation ends the run. */
static bool is_over(const struct accel_stopping *rule, const struct stopping *stopping) {
  return rule->patience > 0 && stopping->failures >= rule->patience;
}

void accel_resume_stopping(struct accel_run *run, const int32_t state[4]) {
  const struct stopping stopping = rt_stopping_read(state);
  if (!is_over(&run->program->stopping, &stopping) || run->first_step >= run->cadences.steps) return;
  run->cadences.steps = run->first_step;
  if (!rt_is_main()) return;
  rt_log_text(&run->reports.log, 2,
              "nothing to train: %" PRId32 " evaluations without improvement ended the run; a larger "
              "training.early_stopping.patience continues the run",
              stopping.failures);
}

/* All ranks come here, with the same measure. */
static void keep_best(struct accel_run *run, struct stopping *stopping) {
  struct problem problem;
  bool ready = !rt_leaves_parts(run) || rt_save_collect(run, STATES_LEFT, &problem);
  if (!ready || !rt_best_save(run, stopping, &problem)) rt_fail(&problem, 1);
}

void accel_stop_early(struct accel_run *run, int64_t at, int32_t state[4]) {
  const struct accel_stopping *rule = &run->program->stopping;
  struct stopping stopping = rt_stopping_read(state);
  if (note(&stopping, rule, metric_of(run)) && rule->restore_best) keep_best(run, &stopping);
  rt_stopping_write(&stopping, state);
  run->stopping.state = state;
  if (!is_over(rule, &stopping)) return;
  run->cadences.steps = at < run->cadences.steps ? at : run->cadences.steps;
  run->stopping.ended = true;
}
