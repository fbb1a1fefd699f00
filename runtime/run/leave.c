#include "runtime/run/run.h"

#include "runtime/checkpoint/sharded_states.h"
#include "runtime/files/files.h"
#include "runtime/process/fail.h"
#include "runtime/process/world.h"
#include "runtime/run/best.h"
#include "runtime/weights/adapters.h"
#include "runtime/weights/bitsandbytes.h"
#include "runtime/weights/narrow.h"
#include "runtime/weights/quantize.h"
#include "runtime/weights/shards.h"
#include "runtime/weights/tensors.h"

#include <stdlib.h>
#include <string.h>

/* The state that lies as a model does which is not the weights: the optimizer's first. */
enum { FIRST_OF_OPTIMIZER = 1 };

bool rt_publishes_parts(const struct accel_run *run) {
  return run->model.published != NULL && rt_is_sharded(run->program, FIRST_OF_OPTIMIZER);
}

bool rt_leaves_parts(const struct accel_run *run) {
  return rt_leaves_sharded(run->program) || rt_publishes_parts(run);
}

bool rt_model_collect(struct accel_run *run, struct problem *problem) {
  char *const own[] = {run->model.weights, run->model.published};
  const size_t count = (size_t)run->program->sharding.whole;
  if (!rt_publishes_parts(run)) return true;
  if (rt_is_main() && run->model.whole == NULL) run->model.whole = calloc(count, sizeof(float));
  if (rt_is_main() && run->model.whole == NULL)
    return rt_problem(problem, "no memory for the whole model of all ranks, %zu elements", count);
  rt_sharded_collect_state(run->program, FIRST_OF_OPTIMIZER, own, run->model.whole);
  return true;
}

int rt_mirror_state(const struct accel_program *program, const char *file) {
  for (int i = 0; i < program->n_states; i++)
    if (program->states[i].name[0] == '\0' && strcmp(program->states[i].file, file) == 0) return i;
  return -1;
}

void *rt_mirror(const struct accel_run *run, const char *file) {
  int which = rt_mirror_state(run->program, file);
  if (which == 0 && run->model.published != NULL)
    return rt_publishes_parts(run) ? run->model.whole : run->model.published;
  return which >= 0 ? run->saves.saver.arrays[which] : NULL;
}

/* What the run leaves at its end has no adapters where the job wants them in the weights, published names where it
 * names a folder, the type that the job names, and codes in bitsandbytes' layout. */
static bool save_mirror(const struct accel_run *run, const char *file, const char *as, bool is_end,
                        struct problem *problem) {
  const bool merges = is_end && run->program->adapters.merge;
  struct tensor_list tensors;
  uint64_t most = (uint64_t)run->program->checkpoint.max_shard_bytes;
  char **saved = &run->saves.saver.arrays[rt_mirror_state(run->program, file)], *array = *saved;
  *saved = rt_mirror(run, file);
  bool written = rt_tensors_of_state(&tensors, run->program, file, run->saves.saver.arrays, problem);
  *saved = array;
  if (!written) return false;
  const bool has_layers = is_end && strcmp(file, "model") == 0;
  written = (!has_layers || rt_tensors_add_streamed(&tensors, run->program, problem)) &&
            (!merges || (rt_tensors_dequantize(run->program, rt_mirror(run, file), &tensors, problem) &&
                         rt_adapters_merge(run->program, rt_mirror(run, file), &tensors, problem))) &&
            (!is_end || (rt_folder_rename(run, &tensors, problem) &&
                         rt_tensors_narrow(run->program, &tensors, run->program->checkpoint.dtype, problem) &&
                         (merges || rt_tensors_lay_out(run->program, rt_mirror(run, file), &tensors, problem)))) &&
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
    const char *as = strcmp(file, "model") == 0 ? rt_folder_stem(run) : file;
    if (program->states[i].name[0] == '\0' && !save_mirror(run, file, as, true, problem)) return false;
  }
  const char *other = strcmp(rt_folder_stem(run), "model") == 0 ? rt_diffusers_stem : "model";
  return rt_shards_remove(run->project_dir, other, problem) && rt_folder_leave(run, problem);
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
