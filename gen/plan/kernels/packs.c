#include "gen/plan/kernels/packs.h"

#include <string.h>

#include "gen/ir/op.h"
#include "gen/plan/graph/weight_visitor.h"
#include "gen/plan/memory/layout.h"
#include "gen/program/kernels.h"
#include "gen/program/optimizers.h"
#include "gen/program/sharding.h"
#include "gen/program/storage.h"
#include "gen/program/target.h"
#include "gen/program/weights.h"

const char packed_variant[] = "packed";

enum { PACKED = 1 }; /* the input that a library may have in a layout of its own */

/* Weights that stay as they are and where they are until the step's end; and no bit may depend on the layout. */
static bool weights_stay(const struct program *program) {
  const struct job *job = program->job;
  return program->kind == PROGRAM_TRAIN && program->target->library.packs && !job->training.deterministic &&
         job->parallelism.reproducible == REPRODUCIBLE_OFF && !weights_come(program) &&
         !job_optimizer(job)->in_backward;
}

/* A parameter that training moves, or nobody; the forward may write others. */
static bool is_weight(const struct storage *storage) {
  if (storage->kind != STORAGE_WEIGHT) return false;
  const struct region *region = storage->function->region;
  const struct region *named = region->forward != NULL ? region->forward : region;
  return !named->parameters.items[storage->index].buffer;
}

bool can_pack(const struct program *program, const struct step *step, const struct kernel *kernel) {
  const struct op_kind *kind = step->node->kind;
  if (kind->library.packs == NULL || !weights_stay(program) || !is_weight(step->inputs[PACKED].storage)) return false;
  const int64_t *strides[] = {kernel->outputs[0].strides, kernel->inputs[0].strides, kernel->inputs[1].strides};
  return kind->library.packs(step->node, strides, program->job->accumulation.num_steps);
}

/* ---- Memory ---- */

/* Layouts are of blocks of up to 64 rows and columns. */
static int64_t packed_bytes(const struct kernel *kernel) {
  enum { BLOCK = 64 };
  const struct kernel_operand *weight = &kernel->inputs[PACKED];
  int64_t bytes = dtype_size(weight->dtype);
  for (int i = 0; i < weight->shape.rank; i++) bytes *= (weight->shape.dim[i] + BLOCK - 1) / BLOCK * BLOCK;
  return arena_aligned(bytes);
}

/* Which kernels have met which weights, as [kernel][weight]. */
static bool *met_by(const struct weight_visitor *visitor, const struct kernel *kernel, int weight) {
  const struct program *program = visitor->program;
  size_t at = (size_t)kernel_index(program, kernel);
  return (bool *)visitor->context + at * (size_t)program->weights->count + weight;
}

static void visit_function(struct weight_visitor *visitor, const struct function *function,
                           const char *const *prefixes) {
  struct program *program = visitor->program;
  const struct region *region = function != NULL ? function->region : NULL;
  for (int s = 0; function != NULL && s < function->n_steps; s++) {
    struct kernel *kernel = function->steps[s].kernel;
    if (kernel == NULL || !kernel->packs || strcmp(kernel->variant, packed_variant) != 0) continue;
    const struct region *named = region->forward != NULL ? region->forward : region;
    const struct parameter *p = &named->parameters.items[function->steps[s].inputs[PACKED].storage->index];
    const struct weight *weight =
        weight_named(program->weights, weight_path(program->arena, prefixes[p->scope], p->path));
    bool *met = met_by(visitor, kernel, (int)(weight - program->weights->items));
    kernel->weights += !*met;
    *met = true;
  }
}

static void visit(struct weight_visitor *visitor, const struct region *region, const struct node *after,
                  const char *const *prefixes) {
  const struct function *function = after == NULL ? function_of(visitor->program, region) : NULL;
  visit_function(visitor, function, prefixes);
  if (function != NULL) visit_function(visitor, function->deferred, prefixes);
}

void plan_packs(struct program *program) {
  size_t size = (size_t)program->kernels.count * (size_t)program->weights->count + 1;
  struct weight_visitor visitor = {.program = program, .visit = visit, .context = arena_alloc(program->arena, size)};
  weight_visit_entries(&visitor);
  for (int i = 0; i < program->kernels.count; i++)
    if (program->kernels.items[i]->weights > 0)
      program->library.packed += program->kernels.items[i]->weights * packed_bytes(program->kernels.items[i]);
}
