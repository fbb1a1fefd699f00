#include "gen/program/sending.h"

#include "gen/program/target.h"
#include "gen/program/weights.h"

bool function_sends(const struct function *function) {
  for (int i = 0; i < function->n_steps; i++) {
    const struct step *step = &function->steps[i];
    if (step->complete != NULL || (step->callee != NULL && function_sends(step->callee))) return true;
  }
  return false;
}

const char *sending_name(const struct program *program, const struct function *function) {
  return program->ranks.sends_always ? function->name : arena_printf(program->arena, "last_%s", function->name);
}

int64_t all_gradients(const struct program *program) {
  return weights_type(program->gradients)->bytes / dtype_size(DTYPE_FLOAT32);
}

bool sums_in_arena(const struct program *program) {
  const struct job *job = program->job;
  const bool begins = program->ranks.n_buckets > 0 && (!job_has_tree(job) || program->ranks.tree.by_buckets);
  return begins && program->target->ranks.shared_memory && job->parallelism.wire == PRECISION_NO;
}

bool is_within_machine(const struct job *job, enum axis axis) {
  int64_t each = job->devices.ranks / job->devices.nodes, stride = job_axis_stride(job, axis);
  return job->parallelism.axes[axis] <= (each / stride < 1 ? 1 : each / stride);
}

bool tree_is_async(const struct program *program, enum axis axis) {
  if (program->target->ranks.gathers_sums) return true;
  const struct axes *batches = &program->mesh.batches;
  return axis == batches->items[batches->count - 1] && is_within_machine(program->job, axis);
}
