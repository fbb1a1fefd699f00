#include "runtime/checkpoint/save.h"

#include "runtime/checkpoint/divided.h"
#include "runtime/process/signals.h"
#include "runtime/process/world.h"
#include "runtime/report/stopwatch.h"
#include "runtime/weights/adapters.h"
#include "runtime/weights/shards.h"
#include "runtime/weights/tensors.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

void rt_save_failed(struct accel_run *run, const struct problem *problem) {
  rt_log_clear(&run->log);
  if (!run->program->checkpoint.outlives_errors) rt_fail(problem, 1);
  rt_warn("%s; the run goes on", problem->what);
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

static bool save_mirror(const struct accel_run *run, const char *file, const char *as, bool merged,
                        struct problem *problem) {
  struct tensor_list tensors;
  uint64_t most = (uint64_t)run->program->checkpoint.max_shard_bytes;
  char **held = &run->saver.arrays[mirror_of(run, file)], *array = *held;
  *held = rt_mirror(run, file);
  bool written = rt_tensors_of_state(&tensors, run->program, file, run->saver.arrays, problem);
  *held = array;
  if (!written) return false;
  if (merged) rt_adapters_leave_out(run->program, &tensors);
  written = rt_shards_write(run->project_dir, as, &tensors, most, NULL, problem);
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

bool rt_save_weights(struct accel_run *run) {
  struct problem problem;
  bool saved = true;
  const struct accel_program *program = run->program;
  bool merges = program->adapters.merge && !run->merged;
  if (program->adapters.count > 0 && !run->merged && !save_adapters(run, &problem)) {
    rt_save_failed(run, &problem);
    return false;
  }
  run->merged = merges || run->merged;
  for (int i = 0; i < program->n_states; i++) {
    const char *file = program->states[i].file;
    if (program->states[i].name[0] != '\0') continue;
    if (merges) rt_adapters_merge(program, rt_mirror(run, file));
    if (save_mirror(run, file, file, program->adapters.merge, &problem)) continue;
    rt_save_failed(run, &problem);
    saved = false;
  }
  return saved;
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
  if (checkpoint->saves_on_signal) run->signal = rt_signal_name((int)rt_world_largest(rt_signals_came()));
  if (checkpoint->minutes > 0) run->is_timely = rt_world_largest(is_over) != 0;
}

bool accel_save_is_due(struct accel_run *run, int64_t at) {
  ask(run, at);
  return rt_events_save(&run->cadences, at) || run->is_timely || run->signal != NULL;
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
  const struct checkpoint what = {.step = at, .epoch = position / taken, .index = position % taken, .lr = lr};
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
      *saved = (struct saved){.path = run->saver.path, .is_begun = run->saver.busy};
    else if (rt_is_main())
      rt_save_failed(run, &problem);
  }
  if (at_end && rt_is_main()) {
    if (rt_save_weights(run)) saved->path = run->model_path;
    run->saved_at = at;
  }
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
  if (run->signal == NULL || at >= run->cadences.steps) return;
  run->cadences.steps = at;
  bool by_rank = run->program->checkpoint.by_rank, is_saved = run->saved_at == at;
  bool ready = is_saved || by_rank || rt_save_collect(run, run->program->n_states, &problem);
  if (!rt_is_main() && !by_rank) return;
  if (rt_is_main()) rt_log_clear(&run->log);
  bool saved = is_saved ? rt_saver_wait(&run->saver, &problem) : ready && save_checkpoint(run, at, lr, false, &problem);
  run->saved_at = at;
  if (!rt_is_main()) return;
  if (!saved) rt_fail(&problem, 1);
  printf("%s after step %" PRId64 ": saved %s; go on with --resume auto\n", run->signal, at, run->saver.path);
}

void rt_end_saves(struct accel_run *run) {
  struct problem problem;
  if (!rt_saver_wait(&run->saver, &problem)) rt_save_failed(run, &problem);
  if (run->weights == NULL || run->signal != NULL || run->saved_at >= 0) return;
  if (rt_is_divided(run->program, 0) && !rt_save_collect(run, 1, &problem)) rt_save_failed(run, &problem);
  if (rt_is_main()) rt_save_weights(run);
}
