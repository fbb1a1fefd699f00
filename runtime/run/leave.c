#include "runtime/run/run.h"

#include "runtime/files/files.h"
#include "runtime/process/fail.h"
#include "runtime/run/best.h"
#include "runtime/weights/adapters.h"
#include "runtime/weights/narrow.h"
#include "runtime/weights/shards.h"
#include "runtime/weights/tensors.h"

#include <string.h>

static int mirror_of(const struct accel_run *run, const char *file) {
  const struct accel_program *program = run->program;
  for (int i = 0; i < program->n_states; i++)
    if (program->states[i].name[0] == '\0' && strcmp(program->states[i].file, file) == 0) return i;
  return -1;
}

void *rt_mirror(const struct accel_run *run, const char *file) {
  int which = mirror_of(run, file);
  if (which == 0 && run->model.published != NULL) return run->model.published;
  return which >= 0 ? run->saves.saver.arrays[which] : NULL;
}

/* What the run leaves at its end has no adapters where the job wants them in the weights, published names where it
 * names a folder, and the type that the job names. */
static bool save_mirror(const struct accel_run *run, const char *file, const char *as, bool is_end,
                        struct problem *problem) {
  const bool merges = is_end && run->program->adapters.merge;
  struct tensor_list tensors;
  uint64_t most = (uint64_t)run->program->checkpoint.max_shard_bytes;
  char **saved = &run->saves.saver.arrays[mirror_of(run, file)], *array = *saved;
  *saved = rt_mirror(run, file);
  bool written = rt_tensors_of_state(&tensors, run->program, file, run->saves.saver.arrays, problem);
  *saved = array;
  if (!written) return false;
  written = (!merges || rt_adapters_merge(run->program, rt_mirror(run, file), &tensors, problem)) &&
            (!is_end || (rt_folder_rename(run, &tensors, problem) &&
                         rt_tensors_narrow(&tensors, run->program->checkpoint.dtype, problem))) &&
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
         rt_adapters_save(run->program, folder, rt_mirror(run, "model"), rt_folder_base(run), problem);
}

static bool save_all(const struct accel_run *run, struct problem *problem) {
  const struct accel_program *program = run->program;
  if (program->adapters.count > 0 && !save_adapters(run, problem)) return false;
  for (int i = 0; i < program->n_states; i++) {
    const char *file = program->states[i].file;
    if (program->states[i].name[0] == '\0' && !save_mirror(run, file, file, true, problem)) return false;
  }
  return rt_folder_leave(run, problem);
}

/* The best weights that cannot be had leave the last ones, and a status that says so. */
bool rt_leave_weights(struct accel_run *run, struct problem *problem) {
  struct problem of_best;
  bool best = rt_best_restore(run, &of_best);
  run->model.is_left = save_all(run, problem);
  if (!best) rt_fail(&of_best, 1);
  return run->model.is_left;
}

void accel_publish(struct accel_run *run, void *weights) {
  run->model.published = weights;
}
