/* What happens between steps: lines, evaluations, saves. */
#include "runtime/base/clock.h"
#include "runtime/process/fail.h"
#include "runtime/process/world.h"
#include "runtime/run/run.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* How often the progress line moves, and the clock and the signals are looked at, in seconds. */
static const double progress_pace = 0.25;

/* Whether the run evaluates what it begins with. */
static bool evaluates_start(const struct accel_run *run, int64_t at) {
  return run->program->eval_on_start && at == 0;
}

int64_t accel_next_event(const struct accel_run *run, int64_t at) {
  const struct accel_checkpoints *checkpoint = &run->program->checkpoint;
  bool looks = run->reports.log.progress.out != NULL || checkpoint->saves_on_signal || checkpoint->minutes > 0;
  if (evaluates_start(run, at) && run->reports.eval_at != at) return at;
  int64_t next = at == run->first_step ? at + 1 : rt_events_next(&run->cadences, at);
  double step = rt_stopwatch_pace(run->reports.watch);
  if (looks && step > 0 && (double)(next - at) * step > progress_pace) {
    int64_t soon = (int64_t)(progress_pace / step);
    next = at + (soon > 0 ? soon : 1);
  }
  rt_world_broadcast(&next, sizeof next); /* times differ among ranks, and all look at the same steps */
  rt_stopwatch_start(run->reports.watch);
  return next;
}

bool accel_eval_is_due(const struct accel_run *run, int64_t at) {
  rt_stopwatch_stop(run->reports.watch); /* what follows is evaluation, not training */
  return rt_events_eval(&run->cadences, at) || evaluates_start(run, at);
}

void accel_report_eval(struct accel_run *run, int64_t at, double eval_loss) {
  run->reports.eval_at = at;
  run->reports.eval_loss = eval_loss;
}

void rt_report_metric(struct accel_run *run, const char *name, double value) {
  struct problem problem;
  char whole[64];
  snprintf(whole, sizeof whole, "eval_%s", name);
  if (rt_extras_set(&run->reports.extras, whole, value, true)) return;
  rt_problem(&problem, "no memory for a metric");
  rt_fail(&problem, 1);
}

/* The rest of the run at its pace so far, evaluations and saves included, the first step not. */
static double seconds_left(const struct accel_run *run, int64_t at) {
  const struct stopwatch *watch = run->reports.watch;
  double left = (double)(run->cadences.steps - at);
  int64_t timed = at - run->first_step - 1;
  if (timed <= 0) return left * rt_stopwatch_pace(watch);
  return left * (rt_now() - watch->first_step_end) / (double)timed;
}

double rt_units_per_step(const struct accel_run *run) {
  const struct accel_program *program = run->program;
  const struct accumulation *accumulation = &run->input.accumulation;
  const struct mixture *mixture = &run->input.data.split[ACCEL_TRAIN].mixture;
  int64_t samples = mixture->taken < mixture->samples ? mixture->taken : mixture->samples;
  double tokens = (double)samples / (double)accumulation->in_epoch;
  if (program->sequence_length > 0) tokens *= (double)program->sequence_length;
  double micro_batches =
      (double)accumulation->in_epoch / (double)rt_accumulation_steps(accumulation, accumulation->in_epoch);
  return tokens * (accumulation->with_epochs ? micro_batches : (double)accumulation->in_step);
}

/* Resident pages, of the host's memory; 0 where the system does not report it. getrusage would count those of the
 * process that started this one, too. */
static double peak_mib(void) {
  static const char name[] = "\nVmHWM:";
  char text[4096];
  int file = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  ssize_t length = read(file, text, sizeof text - 1);
  close(file);
  text[length > 0 ? length : 0] = '\0';
  const char *peak = strstr(text, name);
  return peak != NULL ? strtod(peak + sizeof name - 1, NULL) / 1024 : 0;
}

/* With what is done of the current one. */
static double epochs_at(const struct accel_run *run, int64_t at) {
  const struct input_position next = rt_input_position(run, at);
  return (double)next.epoch + (double)next.index / (double)run->input.data.split[ACCEL_TRAIN].mixture.taken;
}

static struct figures figures_of(const struct accel_run *run, int64_t at, struct accel_report report) {
  double step = rt_stopwatch_step(run->reports.watch);
  const struct stopwatch *watch = run->reports.watch;
  return (struct figures){
      .step = at,
      .steps = run->cadences.steps,
      .epoch = epochs_at(run, at),
      .loss = report.loss,
      .lr = report.lr,
      .grad_norm = report.grad_norm,
      .loss_scale = report.loss_scale,
      .skipped = report.skipped,
      .has_eval = run->reports.eval_at == at,
      .eval_loss = run->reports.eval_loss,
      .extras = &run->reports.extras,
      .tokens_per_s = step > 0 ? rt_units_per_step(run) / step : 0,
      .stopped_early = run->stopping.ended,
      .step_ms = 1e3 * step,
      .input_wait_ms = watch->steps > 0 ? 1e3 * watch->waited / (double)watch->steps : 0,
      .peak_mib = peak_mib(),
      .left_s = seconds_left(run, at),
      .first_step_s =
          run->reports.has_first_step || at == run->first_step ? -1 : watch->first_step_end - watch->process_start,
      .weights_s = watch->weights,
  };
}

/* A run's first step also sets up libraries and touches memory for the first time. It is logged by itself and left out
 * of the first line's pace, unless the line is about nothing else. */
static void note_first_step(struct accel_run *run, bool line_is_due) {
  run->reports.watch->first_step_end = rt_now();
  if (!line_is_due) rt_stopwatch_reset(run->reports.watch);
  if (rt_saver_writes(&run->saves.saver)) rt_saver_prepare(&run->saves.saver);
}

/* A checkpoint must not be ahead of the metrics, so what is saved comes between the two halves of a line. */
static void report_step(struct accel_run *run, struct figures *figures) {
  struct problem problem;
  figures->save_stall_ms = 1e3 * run->reports.stalled;
  run->reports.stalled = 0;
  if (rt_is_main() && !rt_trackers_figures(&run->reports.trackers, figures, &problem)) rt_save_failed(run, &problem);
  struct saved saved = rt_save_due(run, figures->step, figures->lr);
  run->reports.stalled = saved.stall_s;
  figures->saved = saved.path;
  figures->is_saving = saved.is_pending;
  if (rt_is_main() && run->reports.log.form == LOG_JSON)
    rt_trackers_print(&run->reports.trackers, figures->step, stdout);
  if (rt_is_main()) rt_log_line(&run->reports.log, figures);
  run->reports.has_first_step = figures->step > run->first_step;
  rt_extras_logged(&run->reports.extras);
  rt_stopwatch_reset(run->reports.watch);
}

/* A save by the clock, at a step that has no line: metrics.jsonl has the lines of a run that was never saved. */
static void save_between_lines(struct accel_run *run, const struct figures *figures) {
  struct saved saved = rt_save_due(run, figures->step, figures->lr);
  run->reports.stalled += saved.stall_s;
  if (saved.path != NULL) rt_log_saved(&run->reports.log, figures->step, saved.path, saved.is_pending);
}

void accel_handle_events(struct accel_run *run, int64_t at, struct accel_report report) {
  bool line = rt_events_line(&run->cadences, at) || run->reports.eval_at == at;
  rt_stopwatch_stop(run->reports.watch);
  rt_stopwatch_count(run->reports.watch, at);
  if (run->reports.watch->first_step_end == 0 && at > run->first_step) note_first_step(run, line);
  struct figures figures = figures_of(run, at, report);
  if (line)
    report_step(run, &figures);
  else if (accel_save_is_due(run, at) && run->saves.signal == 0)
    save_between_lines(run, &figures);
  else
    rt_log_progress(&run->reports.log, &figures);
  rt_end_on_signal(run, at, report.lr);
}
