/* The beginning and the end of a run. */
#include "runtime/run/run.h"

#include "runtime/base/clock.h"
#include "runtime/base/dtype.h"
#include "runtime/base/terminal.h"
#include "runtime/checkpoint/prints.h"
#include "runtime/checkpoint/sharded_states.h"
#include "runtime/files/files.h"
#include "runtime/process/device.h"
#include "runtime/process/fail.h"
#include "runtime/process/flags.h"
#include "runtime/process/signals.h"
#include "runtime/process/world.h"
#include "runtime/report/intervals.h"
#include "runtime/run/compare.h"
#include "runtime/run/outputs.h"
#include "runtime/run/record.h"
#include "runtime/run/signpost.h"
#include "runtime/values/processes.h"
#include "runtime/weights/disk_states.h"
#include "runtime/weights/layers.h"
#include "runtime/weights/sharded_rows.h"
#include "runtime/weights/shared_file.h"
#include "runtime/weights/streamed.h"
#include "runtime/weights/tensor_parts.h"
#include "runtime/weights/tensors.h"
#include "runtime/weights/weights.h"

#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *read_flags(struct accel_run *run, const struct accel_program *program, int argc, char **argv) {
  const char *data = NULL;
  bool quiet = false, json = false;
  const struct flag flags[] = {
      {"--data", "FILE", "train on this file instead of the job's", FLAG_TEXT, 0, {.text = &data}},
      {"--project-dir", "DIR", "write metrics and weights here", FLAG_TEXT, 0, {.text = &run->project_dir}},
      {"--resume",
       "WHAT",
       "auto, never, or a checkpoint to resume from",
       FLAG_TEXT,
       0,
       {.text = &run->resumption.requested}},
      {"--steps", "N", "stop after this many steps", FLAG_COUNT, 1, {.count = &run->cadences.steps}},
      {"--quiet", "", "print warnings and errors alone", FLAG_SWITCH, 0, {.given = &quiet}},
      {"--json", "", "print lines of JSON, as in metrics.jsonl", FLAG_SWITCH, 0, {.given = &json}},
  };
  rt_flags_read(program, flags, sizeof flags / sizeof *flags, argc, argv);
  if (quiet || json) rt_terminal_be_still();
  run->command = argv[0];
  run->reports.log.form = json ? LOG_JSON : quiet ? LOG_QUIET : LOG_TABLE;
  return data;
}

/* What others gather: this rank's part of the weights, where ranks along dp_shard divide them. */
static struct arena_parts parts_of(const struct accel_program *program) {
  const struct accel_state *weights = &program->states[0];
  struct arena_parts parts = {.summed = program->summed};
  if (rt_rows_divide(program, 0))
    parts.gathered = (struct accel_byte_range){weights->offset, (size_t)weights->count * rt_dtype_size(weights->dtype)};
  return parts;
}

struct accel_run *accel_start(const struct accel_program *program, int argc, char **argv) {
  static struct stopwatch watch;
  struct problem problem;
  watch = (struct stopwatch){.process_start = rt_process_start()};
  rt_world_join();
  struct accel_run *run = calloc(1, sizeof *run);
  if (run == NULL) {
    rt_problem(&problem, "no memory to start");
    rt_fail(&problem, 1);
  }
  const struct accel_program *own = rt_layers_expand(program, &problem);
  program = own != NULL ? rt_tensor_parts_join(own, &problem) : NULL;
  if (program == NULL) rt_fail(&problem, 1);
  run->program = program;
  rt_process_runs(program);
  run->cadences = (struct cadences){.steps = program->steps,
                                    .log_every = program->log_every,
                                    .log_first = program->log_first,
                                    .eval_every = program->eval_every,
                                    .eval_delay = program->eval_delay,
                                    .save_every = program->save_every,
                                    .hook_every = program->hooks_steps,
                                    .mean_every = program->local_steps};
  run->project_dir = program->project_dir;
  run->resumption.requested = program->checkpoint.resume;
  run->reports.watch = &watch;
  run->saves.mean_at = run->saves.newest_step = run->reports.eval_at = run->saves.checked_at = run->user.save_at = -1;
  const char *data = read_flags(run, program, argc, argv);
  if (!rt_world_divide(program, &problem)) rt_fail_together(&problem, 2);
  run->bound = rt_world_set_threads(program);
  rt_guard_mappings();
  if (program->checkpoint.saves_on_signal) rt_signals_watch();
  signal(SIGXFSZ, SIG_IGN); /* then a write past a limit fails, with a message, as on a full disk */
  bool open = rt_device_is_there(&problem) && rt_input_open(run, data, &problem) &&
              rt_arena_open(&run->arena, program->arena_bytes, &problem) &&
              (program->disk.disk == NULL || program->disk.disk->open(program, &problem));
  rt_world_require(open, &problem, 1);
  run->cadences.log_epochs = rt_accumulation_cadence(&run->input.accumulation, program->log_epochs);
  run->cadences.eval_epochs = rt_accumulation_cadence(&run->input.accumulation, program->eval_epochs);
  run->cadences.eval_delay_epochs = rt_accumulation_cadence(&run->input.accumulation, program->eval_delay_epochs);
  run->cadences.epoch = rt_accumulation_cadence(&run->input.accumulation, (struct accel_epochs){1, 1});
  if (program->hooks_epochs) run->cadences.hook_epochs = run->cadences.epoch;
  run->cadences.save_epochs = rt_accumulation_cadence(&run->input.accumulation, program->save_epochs);
  const struct arena_parts parts = parts_of(own);
  rt_world_open_arena(run->arena.base, run->arena.bytes, &parts);
  rt_compare_ranks(program, &run->input.data);
  return run;
}

void *accel_arena(const struct accel_run *run) {
  return run->arena.base;
}

int64_t accel_rank(const struct accel_run *run) {
  return rt_data_rank(run->program);
}

int64_t accel_rank_along(const struct accel_run *run, enum accel_axis axis) {
  return rt_rank_along(run->program, axis);
}

int64_t accel_steps(const struct accel_run *run) {
  return run->cadences.steps;
}

int64_t accel_first_step(const struct accel_run *run) {
  return run->first_step;
}

/* A file is read by rank 0 alone, which need not be where others see it. */
static bool fill_fresh(const struct accel_program *program, void *weights, struct problem *problem) {
  if (program->start.path == NULL) {
    rt_weights_init(program, weights);
    return true;
  }
  bool good = !rt_is_main() || rt_weights_load(program, program->start.path, weights, problem);
  rt_world_require(good, problem, 1);
  rt_world_broadcast(weights, program->weights_bytes);
  return true;
}

/* Layers stay in the file, which stays open. */
static bool open_streamed(struct accel_run *run, void *weights, struct problem *problem) {
  const struct accel_program *program = run->program;
  struct weights_file file;
  if (!rt_weights_open(&file, program, program->start.path, problem) ||
      !rt_prints_of_weights(&file, &run->saves.weights, problem))
    return false;
  if (run->resumption.continues && !rt_prints_check_weights(run->resumption.folder, run->saves.weights, problem))
    return false;
  if (!run->resumption.continues) rt_weights_fill(program, &file, weights);
  return program->reader->begin(program, &file, weights, problem);
}

/* Each rank reads its part of a file that all of them see. False: they do not, or it is wrong. */
static bool read_parts(const struct accel_program *program, char *own, struct problem *problem) {
  struct weights_file file;
  if (program->start.path == NULL || !rt_divides_tensors(program)) return false;
  bool opened = rt_weights_open(&file, program, program->start.path, problem);
  bool shared = rt_weights_are_shared(opened ? &file : NULL);
  bool read = !shared || rt_tensor_parts_read(program, &file, own, problem);
  if (opened) rt_weights_close(&file);
  rt_world_require(read, problem, 1);
  return shared;
}

/* Rank 0 makes the whole and distributes it, where it is not read in parts. */
static bool fill_fresh_parts(struct accel_run *run, struct problem *problem) {
  const struct accel_program *program = run->program;
  char **arrays = run->saves.saver.arrays, **own = run->saves.saver.own;
  if (read_parts(program, own[0], problem)) return true;
  bool good = rt_sharded_open(program, own, arrays, STATES_LEFT, problem);
  if (good && rt_is_main() && program->start.path == NULL) rt_weights_init(program, arrays[0]);
  if (good && rt_is_main() && program->start.path != NULL)
    good = rt_weights_load(program, program->start.path, arrays[0], problem);
  rt_world_require(good, problem, 1);
  rt_sharded_scatter(program, 0, own[0], arrays[0]);
  rt_sharded_close(program, arrays);
  return true;
}

bool accel_load_is_due(struct accel_run *run) {
  struct problem problem;
  if (!rt_resume_choose(run, &problem)) rt_fail(&problem, 1);
  return run->resumption.folder[0] != '\0';
}

/* What is done alone by those that write. */
static bool open_files(struct accel_run *run, struct problem *problem) {
  const struct accel_program *program = run->program;
  if (rt_is_main()) rt_log_open(&run->reports.log, program->sequence_length == 0);
  return (run->resumption.continues || rt_outputs_spare_inputs(run, problem)) && rt_folder_open(run, problem) &&
         rt_folder_model(run, run->model.path, sizeof run->model.path, problem) &&
         (!rt_is_main() || (rt_record_write(run, problem) &&
                            rt_trackers_open(&run->reports.trackers, program, run->project_dir,
                                             run->resumption.continues ? run->first_step : -1, problem)));
}

static void end_trackers(void *trackers) {
  rt_trackers_fail(trackers);
}

/* Where ranks divide the weights, `weights` is this one's part. */
static void fill(struct accel_run *run, void *weights) {
  const struct accel_program *program = run->program;
  struct problem problem;
  double began = rt_now();
  bool good = rt_resume(run, &problem);
  if (good && rt_streams(program))
    good = open_streamed(run, weights, &problem);
  else if (good && !run->resumption.continues)
    good = rt_is_sharded(program, 0) ? fill_fresh_parts(run, &problem) : fill_fresh(program, weights, &problem);
  if (!good) rt_fail(&problem, 1);
  run->reports.watch->weights = rt_now() - began;
  run->model.weights = weights;
  if (!rt_input_start(run, &problem)) rt_fail(&problem, 1);
  /* Only now, when nothing of the input can be wrong any more, the first file is written. */
  run->saves.newest_time = rt_now();
  if (!rt_writes_files(program)) return;
  if (!open_files(run, &problem)) rt_fail(&problem, 1);
  run->saves.prints = rt_prints_of(&run->input.data);
  if (!rt_is_main()) return;
  rt_fail_after(end_trackers, &run->reports.trackers);
  run->saves.saver.metrics = rt_trackers_metrics_file(&run->reports.trackers);
  rt_signpost_begin(run);
  rt_resume_report(run);
}

void accel_fill_weights(struct accel_run *run, void *weights) {
  fill(run, weights);
}

void accel_fill_parts(struct accel_run *run) {
  fill(run, (char *)run->arena.base + run->program->states[0].offset);
}

void accel_fill_averages(struct accel_run *run, void *averages) {
  const struct accel_program *program = rt_rank_program(run->program);
  const int ema = rt_mirror_state(program, "ema"), state = ema >= 0 ? ema : 1; /* of the optimizer's the first */
  if (run->resumption.continues) return;
  if (rt_rows_divide(program, 0))
    memcpy(averages, run->model.weights, rt_state_bytes(&program->states[0]));
  else
    rt_rows_take(program, state, averages, 0, program->weights_bytes / sizeof(float), run->model.weights);
}

static void free_run(struct accel_run *run) {
  free(run->model.whole);
  rt_folder_close(run);
  rt_input_close(run);
  json_decref(run->saves.prints);
  json_decref(run->saves.weights);
  rt_saver_close(&run->saves.saver);
  if (run->program->disk.disk != NULL) run->program->disk.disk->close();
  if (rt_streams(run->program)) run->program->reader->end();
  rt_arena_close(&run->arena);
  rt_extras_free(&run->reports.extras);
  rt_intervals_free();
  free(run);
}

int accel_finish(struct accel_run *run) {
  struct problem problem;
  rt_end_saves(run);
  const enum run_end end = run->saves.interrupted ? RUN_INTERRUPTED : RUN_FINISHED;
  rt_terminal_clear();
  if (!rt_trackers_flush(&run->reports.trackers, &problem)) rt_fail(&problem, 1);
  if (rt_is_main() && !rt_folder_describe(run, &problem)) rt_fail(&problem, 1);
  if (rt_is_main() && run->reports.log.form == LOG_TABLE) rt_intervals_print(run->program);
  if (!rt_intervals_write(run->program, &problem)) rt_fail(&problem, 1);
  rt_fail_after(NULL, NULL);
  if (!rt_trackers_close(&run->reports.trackers, end, &problem)) rt_fail(&problem, 1);
  rt_world_largest(0); /* a rank that fails in its last writes ends all with its status */
  if (rt_is_main()) rt_signpost_end(run, end);
  int status = run->saves.interrupted ? rt_signal_status(run->saves.signal) : 0;
  free_run(run);
  rt_world_leave();
  return fflush(stdout) == 0 ? status : 1;
}
