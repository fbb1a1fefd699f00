#include "runtime/run/run.h"

#include "runtime/checkpoint/checkpoint.h"
#include "runtime/checkpoint/prints.h"
#include "runtime/checkpoint/sharded_states.h"
#include "runtime/files/checksum.h"
#include "runtime/files/lock.h"
#include "runtime/process/world.h"
#include "runtime/weights/disk_states.h"
#include "runtime/weights/tensors.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool choose(struct accel_run *run, struct problem *problem) {
  struct manifest manifest;
  int64_t number;
  bool any = false;
  run->resumption.folder[0] = '\0';
  if (strcmp(run->resumption.requested, "auto") == 0)
    return rt_saver_newest(&run->saves.saver, INT64_MAX, &number, run->resumption.folder, problem);
  if (strcmp(run->resumption.requested, "never") == 0) {
    if (!rt_saver_has_any(&run->saves.saver, &any, problem)) return false;
    if (!any) return true;
    rt_problem(problem, "%s: holds the checkpoints of an earlier run", run->saves.saver.folder);
    return rt_help(problem, "resume from the newest with --resume auto, remove them, or choose another --project-dir");
  }
  snprintf(run->resumption.folder, sizeof run->resumption.folder, "%s", run->resumption.requested);
  if (!rt_checkpoint_verify(run->resumption.requested, &manifest, stderr, problem)) return false;
  rt_manifest_free(&manifest);
  return true;
}

/* The newest checkpoint that all nodes have, where each has its own: the newest of each, then the newest of each that
 * is no newer than the oldest of these, and so on. */
static bool choose_common(struct accel_run *run, struct problem *problem) {
  const bool keeps = rt_writes_files(run->program);
  bool good = true;
  for (int64_t most = INT64_MAX;;) {
    int64_t own = -1;
    if (keeps && good) good = rt_saver_newest(&run->saves.saver, most, &own, run->resumption.folder, problem);
    most = -rt_world_largest(keeps ? -own : -INT64_MAX);
    const int64_t newest = rt_world_largest(keeps ? own : -1);
    if (most == newest || most < 0) {
      if (!good || !keeps || own >= 0 || newest < 0) return good;
      rt_problem(problem, "%s: has no whole checkpoint that other nodes have, too", run->saves.saver.folder);
      return rt_help(problem, "copy one of another node into it, or start from scratch with another --project-dir");
    }
  }
}

/* Locks the folder that this process writes in. */
static bool lock(const struct accel_run *run, struct problem *problem) {
  if (!rt_writes_files(run->program) || rt_lock_folder(run->project_dir, problem)) return true;
  if (run->program->checkpoint.each_node)
    rt_help(problem, "each node saves in a folder of its own: choose one that they do not share with --project-dir, or "
                     "set checkpoint.save_on_each_node: false");
  return false;
}

bool rt_resume_choose(struct accel_run *run, struct problem *problem) {
  const bool each_node = run->program->checkpoint.each_node;
  if (run->resumption.is_chosen) return true;
  rt_world_require(lock(run, problem) &&
                       rt_saver_open(&run->saves.saver, run->program, run->project_dir, run->arena.base, problem),
                   problem, 1);
  if (each_node) run->saves.saver.next = rt_world_largest(run->saves.saver.next);
  const bool good = each_node && strcmp(run->resumption.requested, "auto") == 0
                        ? choose_common(run, problem)
                        : !rt_writes_files(run->program) || choose(run, problem);
  rt_world_require(good, problem, 1);
  rt_world_broadcast(run->resumption.folder, sizeof run->resumption.folder);
  return run->resumption.is_chosen = true;
}

/* What rank 0 alone does, so that a checkpoint need not be where others see it; but ranks that write parts see them,
 * and so do those of nodes that each have one. */
static bool read_chosen(struct accel_run *run, struct checkpoint *what, bool in_parts, struct problem *problem) {
  bool read =
      (in_parts || rt_sharded_open(run->program, run->saves.saver.own, run->saves.saver.arrays, STATES_ALL, problem)) &&
      rt_checkpoint_compare(run->resumption.folder, run->program, run->resumption.changed,
                            sizeof run->resumption.changed, problem) &&
      rt_checkpoint_read(run->resumption.folder, run->program, run->saves.saver.arrays, what, problem);
  if (read)
    rt_prints_compare(run->resumption.folder, &run->input.data, run->resumption.changed,
                      sizeof run->resumption.changed);
  return read;
}

/* A number that two checkpoints share only if all their files are the same; 0: it cannot be read. */
static int64_t sum_of(const char *folder) {
  struct manifest manifest;
  struct problem problem;
  struct checksum sum = rt_checksum_start();
  if (!rt_checkpoint_verify(folder, &manifest, NULL, &problem)) return 0;
  for (int i = 0; i < manifest.count; i++) {
    rt_checksum_add(&sum, manifest.files[i].name, strlen(manifest.files[i].name));
    rt_checksum_add(&sum, &manifest.files[i].sum.xxh64, sizeof manifest.files[i].sum.xxh64);
  }
  rt_manifest_free(&manifest);
  return (int64_t)(rt_checksum_end(&sum) >> 1);
}

/* Whether all nodes have the same one. */
static bool is_common(const char *folder, struct problem *problem) {
  const int64_t own = sum_of(folder);
  int64_t first = own;
  rt_world_broadcast(&first, sizeof first);
  if (own == first && own != 0) return true;
  rt_problem(problem, "%s: is another checkpoint than that of rank 0", folder);
  return rt_help(problem, "copy rank 0's to this node, or name one that all nodes have with --resume");
}

/* In pieces, so that no rank needs memory for a state that is on its disk. */
static bool send_from_disk(const struct accel_program *program, char *array, size_t bytes, struct problem *problem) {
  enum { PIECE = 1 << 20 };
  const struct scratch *scratch = program->disk.disk->scratch;
  char *piece = malloc(PIECE);
  rt_world_require(piece != NULL || rt_problem(problem, "no memory for a piece of a state"), problem, 1);
  bool good = true;
  for (size_t at = 0; at < bytes; at += PIECE) {
    const size_t size = bytes - at < PIECE ? bytes - at : PIECE;
    if (rt_is_main()) good = good && rt_scratch_read(scratch, array + at, piece, size);
    rt_world_broadcast(piece, size);
    if (!rt_is_main()) good = good && rt_scratch_write(scratch, array + at, piece, size);
  }
  free(piece);
  return good || rt_problem(problem, "%s: states could not be copied: %s", program->disk.folder, strerror(errno));
}

/* A state of which all ranks have the whole. */
static void send_state(const struct accel_program *program, int which, char *array, struct problem *problem) {
  const struct accel_state *state = &program->states[which];
  if (rt_world()->ranks == 1) return;
  if (rt_is_on_disk(program, state))
    rt_world_require(send_from_disk(program, array, rt_state_bytes(state), problem), problem, 1);
  else
    rt_world_broadcast(array, rt_state_bytes(state));
}

bool rt_resume(struct accel_run *run, struct problem *problem) {
  const struct accel_program *program = run->program;
  const bool reads = rt_is_main() || program->checkpoint.each_node;
  struct checkpoint what = {0};
  if (!rt_resume_choose(run, problem)) return false;
  if (run->resumption.folder[0] == '\0') return true;
  bool in_parts =
      program->checkpoint.by_rank && rt_is_main() && rt_checkpoint_is_in_parts(run->resumption.folder, program);
  rt_world_broadcast(&in_parts, sizeof in_parts);
  if (program->checkpoint.each_node) rt_world_require(is_common(run->resumption.folder, problem), problem, 1);
  rt_world_require(!reads || read_chosen(run, &what, in_parts, problem), problem, 1);
  rt_world_broadcast(&what, sizeof what);
  if (in_parts)
    rt_world_require(rt_checkpoint_read_part(run->resumption.folder, program, run->saves.saver.own, problem), problem,
                     1);
  for (int i = 0; i < program->n_states; i++)
    if (!rt_is_sharded(program, i) && !program->checkpoint.each_node)
      send_state(program, i, run->saves.saver.arrays[i], problem);
    else if (rt_is_sharded(program, i) && !in_parts)
      rt_sharded_scatter(program, i, run->saves.saver.own[i], run->saves.saver.arrays[i]);
  rt_sharded_close(program, run->saves.saver.arrays);
  run->resumption.continues = true;
  run->first_step = what.step;
  rt_input_continue(run, what.epoch, what.index);
  return true;
}

void rt_resume_report(const struct accel_run *run) {
  if (!run->resumption.continues) return;
  rt_log_text(&run->reports.log, 2, "resumes from %s, step %" PRId64 "%s%s", run->resumption.folder, run->first_step,
              run->resumption.changed[0] != '\0' ? ", with changes: " : "", run->resumption.changed);
  if (run->first_step >= run->cadences.steps)
    rt_log_text(&run->reports.log, 2,
                "nothing to train: all %" PRId64
                " steps are done; a larger training.steps or --steps continues the run",
                run->cadences.steps);
}
