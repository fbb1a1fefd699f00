#include "gen/plan/ranks/averaging.h"

#include "gen/program/storage.h"

static bool check_buffers(const struct program *program, struct diagnostics *diags) {
  for (int i = 0; i < program->weights->count; i++) {
    if (!program->weights->items[i].parameter->buffer) continue;
    diag_error(diags, job_where(program->job, "parallelism.local_sgd_steps"),
               "'%s' follows the batches of a rank, and is not a parameter that ranks average",
               program->weights->items[i].path);
    diag_help(diags, "take a model without running statistics, or leave local_sgd_steps out");
    return false;
  }
  return true;
}

static void add(struct program *program, const struct weight *first, int64_t from, int64_t end, int others) {
  const char *what = others == 0 ? arena_printf(program->arena, "weights %s", first->path)
                                 : arena_printf(program->arena, "weights %s and %d more", first->path, others);
  struct collective collective = {.kind = COLLECTIVE_ALL_REDUCE,
                                  .axis = program->mesh.batches.items[0],
                                  .what = what,
                                  .width = dtype_size(DTYPE_FLOAT32),
                                  .first = from,
                                  .count = end - from,
                                  .times = 1,
                                  .every = program->job->parallelism.local_steps};
  ARENA_PUSH(program->arena, program->ranks.collectives, collective);
}

bool plan_averaging(struct program *program, struct diagnostics *diags) {
  int64_t size = dtype_size(DTYPE_FLOAT32), from = 0, end = 0;
  const struct weight *first = NULL;
  int others = 0;
  if (program->entry.backward == NULL) return true;
  if (!check_buffers(program, diags)) return false;
  for (int i = 0; i < program->weights->count; i++) {
    const struct weight *weight = &program->weights->items[i];
    if (!weight->parameter->value->differentiable) continue;
    int64_t at = weight->offset / size;
    if (first != NULL && at != end) add(program, first, from, end, others);
    if (first == NULL || at != end) {
      first = weight;
      from = at;
      others = -1;
    }
    others++;
    end = at + arena_aligned(shape_count(weight->parameter->shape) * size) / size;
  }
  if (first != NULL) add(program, first, from, end, others);
  program->ranks.sends_always = true; /* no gradients, so there is one form of the backward */
  return true;
}
