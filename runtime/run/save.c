#include "runtime/run/run.h"

#include "runtime/base/clock.h"
#include "runtime/checkpoint/sharded_states.h"
#include "runtime/process/fail.h"
#include "runtime/process/signals.h"
#include "runtime/process/world.h"

#include <inttypes.h>
#include <stdio.h>

void rt_save_failed(struct accel_run *run, const struct problem *problem) {
  if (!run->program->checkpoint.outlives_errors) rt_fail(problem, 1);
  rt_warn("%s; the run continues", problem->what);
}

static bool has_cadence(const struct accel_run *run) {
  return run->cadences.save_every > 0 || run->cadences.save_epochs.steps > 0 || run->program->checkpoint.minutes > 0;
}

/* Whether the clock or user code wants a save once `at` steps are done. */
static bool is_wanted(const struct accel_run *run, int64_t at) {
  return run->saves.is_timely || run->user.save_at == at;
}

/* A signal that one rank gets, and a time that one finds over, are so for all. */
static void check(struct accel_run *run, int64_t at) {
  const struct accel_checkpoints *checkpoint = &run->program->checkpoint;
  bool is_over = checkpoint->minutes > 0 && rt_now() - run->saves.newest_time >= 60 * checkpoint->minutes;
  if (run->saves.checked_at == at) return;
  run->saves.checked_at = at;
  if (checkpoint->saves_on_signal) run->saves.signal = (int)rt_world_largest(rt_signals_came());
  if (checkpoint->minutes > 0) run->saves.is_timely = rt_world_largest(is_over) != 0;
}

bool accel_save_is_due(struct accel_run *run, int64_t at) {
  check(run, at);
  return rt_events_save(&run->cadences, at) || is_wanted(run, at) || run->saves.signal != 0;
}

/* The save before reads what is collected next. */
bool rt_save_collect(struct accel_run *run, enum state_set states, struct problem *problem) {
  if (run->program->sharding.n_states == 0) return true;
  if (!rt_saver_wait(&run->saves.saver, problem)) rt_save_failed(run, problem);
  return rt_saver_collect(&run->saves.saver, states, problem) &&
         (states == STATES_ALL || rt_model_collect(run, problem));
}

bool accel_mean_is_due(struct accel_run *run, int64_t at) {
  if (run->saves.mean_at == at || !(accel_save_is_due(run, at) || rt_events_mean(&run->cadences, at))) return false;
  run->saves.mean_at = at;
  return true;
}

/* Where ranks write their parts all call it, and rank 0 alone gives errors. */
static bool save_checkpoint(struct accel_run *run, int64_t at, double lr, bool in_background, struct problem *problem) {
  const struct input_position next = rt_input_position(run, at);
  const struct checkpoint what = {.step = at,
                                  .epoch = next.epoch,
                                  .index = next.index,
                                  .lr = lr,
                                  .data = run->saves.prints,
                                  .weights = run->saves.weights};
  if (!rt_saver_wait(&run->saves.saver, problem)) rt_save_failed(run, problem);
  run->saves.newest_step = at;
  run->saves.newest_time = rt_now();
  bool ready = !rt_is_main() || rt_trackers_flush(&run->reports.trackers, problem);
  if (run->program->checkpoint.by_rank && rt_world_largest(!ready) != 0) return false;
  return ready && rt_saver_save(&run->saves.saver, &what, in_background, problem);
}

/* Rank 0 writes what all ranks hold alike, and what they have together, unless each writes its part of that. */
static void save_due(struct accel_run *run, int64_t at, double lr, struct saved *saved) {
  struct problem problem;
  bool at_end = at == run->cadences.steps;
  run->saves.newest_step = at;
  run->saves.newest_time = rt_now();
  bool last = at_end && rt_leaves_parts(run); /* the weights alone are saved, too */
  bool has_checkpoint = has_cadence(run) || is_wanted(run, at);
  bool by_rank = run->program->checkpoint.by_rank, whole = has_checkpoint && !by_rank;
  bool ready = by_rank;
  if (whole || last) ready = rt_save_collect(run, whole ? STATES_ALL : STATES_LEFT, &problem);
  if (whole && last) ready = ready && rt_model_collect(run, &problem);
  const bool keeps = rt_writes_files(run->program);
  if (has_checkpoint && (keeps || by_rank)) {
    bool good = ready && save_checkpoint(run, at, lr, !at_end, &problem);
    if (rt_is_main() && good)
      *saved = (struct saved){.path = run->saves.saver.path, .is_pending = run->saves.saver.busy};
    else if (keeps && !good)
      rt_save_failed(run, &problem);
  }
  if (!at_end || !keeps) return;
  if (rt_leave_weights(run, &problem))
    saved->path = rt_is_main() ? run->model.path : NULL;
  else
    rt_save_failed(run, &problem);
}

struct saved rt_save_due(struct accel_run *run, int64_t at, double lr) {
  struct problem problem;
  struct saved saved = {0};
  double start = rt_now();
  if (rt_saver_has_failed(&run->saves.saver) && !rt_saver_wait(&run->saves.saver, &problem))
    rt_save_failed(run, &problem);
  check(run, at);
  if (run->model.weights == NULL || !(rt_events_save(&run->cadences, at) || is_wanted(run, at))) return saved;
  save_due(run, at, lr, &saved);
  saved.stall_s = rt_now() - start;
  return saved;
}

void rt_end_on_signal(struct accel_run *run, int64_t at, double lr) {
  struct problem problem;
  check(run, at);
  if (run->saves.signal == 0 || at >= run->cadences.steps) return;
  run->cadences.steps = at;
  run->saves.interrupted = true;
  bool by_rank = run->program->checkpoint.by_rank, is_saved = run->saves.newest_step == at;
  bool ready = is_saved || by_rank || rt_save_collect(run, STATES_ALL, &problem);
  const bool keeps = rt_writes_files(run->program);
  if (!keeps && !by_rank) return;
  bool saved =
      is_saved ? rt_saver_wait(&run->saves.saver, &problem) : ready && save_checkpoint(run, at, lr, false, &problem);
  run->saves.newest_step = at;
  if (keeps && !saved) rt_fail(&problem, 1);
  if (!rt_is_main()) return;
  rt_log_text(&run->reports.log, 2, "%s after step %" PRId64 ": saved %s; resume with --resume auto",
              rt_signal_name(run->saves.signal), at, run->saves.saver.path);
}

void rt_end_saves(struct accel_run *run) {
  struct problem problem;
  if (!rt_saver_wait(&run->saves.saver, &problem)) rt_save_failed(run, &problem);
  if (run->model.weights == NULL || run->saves.interrupted) return;
  const bool keeps = rt_writes_files(run->program);
  if (rt_world_largest(keeps && !run->model.is_left) == 0) return;
  if (rt_leaves_parts(run) && !rt_save_collect(run, STATES_LEFT, &problem)) rt_fail(&problem, 1);
  if (keeps && !rt_leave_weights(run, &problem)) rt_fail(&problem, 1);
}
