#include "runtime/run/best.h"

#include "runtime/base/digits.h"
#include "runtime/base/dtype.h"
#include "runtime/checkpoint/sharded_states.h"
#include "runtime/files/checksum.h"
#include "runtime/process/world.h"
#include "runtime/run/run.h"
#include "runtime/weights/shards.h"
#include "runtime/weights/weights.h"

static const char cure[] = "resume with the project folder in which the run was, or from a checkpoint before that "
                           "evaluation";

/* The state file that mirrors what is evaluated. */
static const char *evaluated(const struct accel_run *run) {
  return run->program->stopping.averages ? "ema" : "model";
}

static uint32_t known_of(const struct checksum *sum) {
  return (uint32_t)rt_checksum_end(sum) | 1;
}

static uint32_t sum_of_memory(const struct accel_run *run) {
  const char *weights = rt_mirror(run, evaluated(run));
  struct checksum sum = rt_checksum_start();
  for (int i = 0; i < run->program->n_tensors; i++) {
    const struct accel_tensor *tensor = &run->program->tensors[i];
    size_t count = (size_t)rt_shape_count(tensor->rank, tensor->shape);
    rt_checksum_add(&sum, weights + tensor->offset, count * rt_dtype_size(tensor->dtype));
  }
  return known_of(&sum);
}

/* 0: not all of them are there. */
static uint32_t sum_of_file(const struct accel_run *run, const struct shards *shards) {
  struct checksum sum = rt_checksum_start();
  for (int i = 0; i < run->program->n_tensors; i++) {
    const struct stored_tensor *tensor = rt_shards_find(shards, run->program->tensors[i].name);
    if (tensor == NULL) return 0;
    rt_checksum_add(&sum, tensor->bytes, tensor->size);
  }
  return known_of(&sum);
}

bool rt_best_save(const struct accel_run *run, struct stopping *stopping, struct problem *problem) {
  if (!rt_writes_files(run->program)) return true;
  stopping->known = sum_of_memory(run);
  return rt_save_mirror(run, evaluated(run), "best", problem);
}

/* Another run may have had the folder since the checkpoint that this one resumes from. */
static bool check(const struct accel_run *run, const struct shards *shards, struct problem *problem) {
  const struct stopping stopping = rt_stopping_read(run->stopping.state);
  if (sum_of_file(run, shards) == stopping.known) return true;
  rt_problem(problem, "%s/best.safetensors: these are not the weights of the run's best evaluation, %.6g",
             run->project_dir, rt_unsigned_nan(stopping.best));
  return rt_help(problem, "%s", cure);
}

static bool load(const struct accel_run *run, struct problem *problem) {
  struct shards shards;
  void *weights = rt_mirror(run, evaluated(run));
  if (!rt_shards_open_in(&shards, run->project_dir, "best", cure, problem)) return false;
  bool loaded =
      check(run, &shards, problem) && rt_weights_load_own(run->program, &shards, run->project_dir, weights, problem);
  rt_shards_close(&shards);
  return loaded;
}

bool rt_best_restore(struct accel_run *run, struct problem *problem) {
  if (!run->program->stopping.restore_best || run->stopping.state == NULL || run->stopping.has_best ||
      run->saves.interrupted)
    return true;
  if (rt_stopping_read(run->stopping.state).known == 0) return true;
  run->stopping.has_best = load(run, problem);
  return run->stopping.has_best;
}

void accel_restore_best(struct accel_run *run, const int32_t state[4]) {
  struct problem problem;
  run->stopping.state = state;
  if (rt_writes_files(run->program) && !run->model.is_left && !rt_leaves_parts(run))
    (void)rt_best_restore(
        run, &problem); /* what cannot be is reported when weights are left, and what ranks divide is whole only then */
}
