#include "runtime/run/save.h"

#include "runtime/base/clock.h"
#include "runtime/checkpoint/divided.h"
#include "runtime/process/fail.h"
#include "runtime/process/signals.h"
#include "runtime/process/world.h"
#include "runtime/run/best.h"
#include "runtime/weights/adapters.h"
#include "runtime/weights/shards.h"
#include "runtime/weights/tensors.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

void rt_save_failed(struct accel_run *run, const struct problem *problem) {
  rt_log_clear(&run->log);
  if (!run->program->checkpoint.outlives_errors) rt_fail(problem, 1);
  rt_warn("%s; the run continues", problem->what);
}

static int mirror_of(const struct accel_run *run, const char *file) {
  const struct accel_program *program = run->program;
  for (int i = 0; i < program->n_states; i++)
    if (program->states[i].name[0] == '\0' && strcmp(program->states[i].file, file) == 0) return i;
  return -1;
}

void *rt_mirror(const struct accel_run *run, const char *file) {
  int which = mirror_of(run, file);
  if (which == 0 && run->published != NULL) return run->published;
  return which >= 0 ? run->saver.arrays[which] : NULL;
}

/* With `merges`, without the adapters of a job that wants them in the weights. */
static bool save_mirror(const struct accel_run *run, const char *file, const char *as, bool merges,
                        struct problem *problem) {
  struct tensor_list tensors;
  uint64_t most = (uint64_t)run->program->checkpoint.max_shard_bytes;
  char **held = &run->saver.arrays[mirror_of(run, file)], *array = *held;
  *held = rt_mirror(run, file);
  bool written = rt_tensors_of_state(&tensors, run->program, file, run->saver.arrays, problem);
  *held = array;
  if (!written) return false;
  written = (!merges || rt_adapters_merge(run->program, rt_mirror(run, file), &tensors, problem)) &&
            rt_shards_write(run->project_dir, as, &tensors, most, NULL, problem);
  rt_tensors_free(&tensors);
  return written;
}

bool rt_save_mirror(const struct accel_run *run, const char *file, const char *as, struct problem *problem) {
  return save_mirror(run, file, as, false, problem);
}

static bool save_adapters(const struct accel_run *run, struct problem *problem) {
  char folder[4096];
  return rt_join(folder, sizeof folder, run->project_dir, "adapter", problem) &&
         rt_adapters_save(run->program, folder, rt_mirror(run, "model"), problem);
}

static bool save_all(const struct accel_run *run, struct problem *problem) {
  const struct accel_program *program = run->program;
  if (program->adapters.count > 0 && !save_adapters(run, problem)) return false;
  for (int i = 0; i < program->n_states; i++) {
    const char *file = program->states[i].file;
    if (program->states[i].name[0] == '\0' && !save_mirror(run, file, file, program->adapters.merge, problem))
      return false;
  }
  return true;
}

/* The best weights that cannot be had leave the last ones, and a status that says so. */
bool rt_leave_weights(struct accel_run *run, struct problem *problem) {
  struct problem of_best;
  bool best = rt_best_restore(run, &of_best);
  run->left = save_all(run, problem);
  if (!best) rt_fail(&of_best, 1);
  return run->left;
}

static bool has_cadence(const struct accel_run *run) {
  return run->cadences.save_every > 0 || run->program->checkpoint.minutes > 0;
}

/* A signal that one rank gets, and a time that one finds over, are so for all. */
static void ask(struct accel_run *run, int64_t at) {
  const struct accel_checkpoints *checkpoint = &run->program->checkpoint;
  bool is_over = checkpoint->minutes > 0 && rt_now() - run->saved_time >= 60 * checkpoint->minutes;
  if (run->asked_at == at) return;
  run->asked_at = at;
  if (checkpoint->saves_on_signal) run->signal = (int)rt_world_largest(rt_signals_came());
  if (checkpoint->minutes > 0) run->is_timely = rt_world_largest(is_over) != 0;
}

bool accel_save_is_due(struct accel_run *run, int64_t at) {
  ask(run, at);
  return rt_events_save(&run->cadences, at) || run->is_timely || run->signal != 0;
}

/* The save before reads what is collected anew. */
bool rt_save_collect(struct accel_run *run, int n_states, struct problem *problem) {
  if (run->program->division.n_rows == 0) return true;
  if (!rt_saver_wait(&run->saver, problem)) rt_save_failed(run, problem);
  return rt_saver_collect(&run->saver, n_states, problem);
}

bool accel_mean_is_due(struct accel_run *run, int64_t at) {
  if (run->mean_at == at || !(accel_save_is_due(run, at) || rt_events_mean(&run->cadences, at))) return false;
  run->mean_at = at;
  return true;
}

/* Where ranks write their parts all call it, and rank 0 alone gives errors. */
static bool save_checkpoint(struct accel_run *run, int64_t at, double lr, bool in_background, struct problem *problem) {
  const struct data_split *train = &run->data.split[ACCEL_TRAIN];
  int64_t position = rt_position(run, at) + train->shift, taken = train->mixture.taken;
  const struct checkpoint what = {
      .step = at, .epoch = position / taken, .index = position % taken, .lr = lr, .data = run->prints};
  if (!rt_saver_wait(&run->saver, problem)) rt_save_failed(run, problem);
  run->saved_at = at;
  run->saved_time = rt_now();
  bool ready = !rt_is_main() || rt_log_flush(&run->log, problem);
  if (run->program->checkpoint.by_rank && rt_world_largest(!ready) != 0) return false;
  return ready && rt_saver_save(&run->saver, &what, in_background, problem);
}

/* Rank 0 writes what all ranks hold alike, and what they have together, unless each writes its part of that. */
static void save_due(struct accel_run *run, int64_t at, double lr, struct saved *saved) {
  struct problem problem;
  bool at_end = at == run->cadences.steps;
  run->saved_at = at;
  run->saved_time = rt_now();
  bool last = at_end && rt_is_divided(run->program, 0); /* the weights alone are saved, too */
  bool by_rank = run->program->checkpoint.by_rank, whole = has_cadence(run) && !by_rank;
  bool ready = by_rank;
  if (whole || last) ready = rt_save_collect(run, whole ? run->program->n_states : 1, &problem);
  if (has_cadence(run) && (rt_is_main() || by_rank)) {
    bool good = ready && save_checkpoint(run, at, lr, !at_end, &problem);
    if (rt_is_main() && good)
      *saved = (struct saved){.path = run->saver.path, .is_pending = run->saver.busy};
    else if (rt_is_main())
      rt_save_failed(run, &problem);
  }
  if (!at_end || !rt_is_main()) return;
  if (rt_leave_weights(run, &problem))
    saved->path = run->model_path;
  else
    rt_save_failed(run, &problem);
}

struct saved rt_save_due(struct accel_run *run, int64_t at, double lr) {
  struct problem problem;
  struct saved saved = {0};
  double start = rt_now();
  if (rt_saver_has_failed(&run->saver) && !rt_saver_wait(&run->saver, &problem)) rt_save_failed(run, &problem);
  ask(run, at);
  if (run->weights == NULL || !(rt_events_save(&run->cadences, at) || run->is_timely)) return saved;
  save_due(run, at, lr, &saved);
  saved.stall_s = rt_now() - start;
  return saved;
}

void rt_end_on_signal(struct accel_run *run, int64_t at, double lr) {
  struct problem problem;
  ask(run, at);
  if (run->signal == 0 || at >= run->cadences.steps) return;
  run->cadences.steps = at;
  run->interrupted = true;
  bool by_rank = run->program->checkpoint.by_rank, is_saved = run->saved_at == at;
  bool ready = is_saved || by_rank || rt_save_collect(run, run->program->n_states, &problem);
  if (!rt_is_main() && !by_rank) return;
  if (rt_is_main()) rt_log_clear(&run->log);
  bool saved = is_saved ? rt_saver_wait(&run->saver, &problem) : ready && save_checkpoint(run, at, lr, false, &problem);
  run->saved_at = at;
  if (!rt_is_main()) return;
  if (!saved) rt_fail(&problem, 1);
  printf("%s after step %" PRId64 ": saved %s; resume with --resume auto\n", rt_signal_name(run->signal), at,
         run->saver.path);
}

void rt_end_saves(struct accel_run *run) {
  struct problem problem;
  if (!rt_saver_wait(&run->saver, &problem)) rt_save_failed(run, &problem);
  if (run->weights == NULL || run->interrupted) return;
  if (rt_world_largest(rt_is_main() && !run->left) == 0) return;
  if (rt_is_divided(run->program, 0) && !rt_save_collect(run, 1, &problem)) rt_fail(&problem, 1);
  if (rt_is_main() && !rt_leave_weights(run, &problem)) rt_fail(&problem, 1);
}
