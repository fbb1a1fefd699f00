#include "gen/plan/ranks/receive.h"

#include "gen/ops/support/nodes.h"
#include "gen/plan/kernels/kernels.h"
#include "gen/plan/memory/layout.h"
#include "gen/program/storage.h"

static bool has(const struct step *step, int stage) {
  return (step->stages >> stage & 1) != 0;
}

static bool is_in(const struct view *view, const struct storage *storage) {
  return view->storage != NULL && storage_root(view->storage) == storage;
}

/* ---- Who reads a storage ---- */

static bool reads(const struct step *step, const struct storage *storage) {
  for (int i = 0; i < step->node->n_inputs; i++)
    if (is_in(&step->inputs[i], storage)) return true;
  for (int i = 0; i < step->node->n_outputs && step->accumulate != NULL; i++)
    if (step->accumulate[i] && is_in(&step->outputs[i], storage)) return true;
  return false;
}

static bool function_reads(const struct function *function, const struct storage *storage, int stage,
                           const struct step *but) {
  for (int i = 0; function != NULL && i < function->n_steps; i++)
    if (&function->steps[i] != but && has(&function->steps[i], stage) && reads(&function->steps[i], storage))
      return true;
  return false;
}

/* Whether a stage needs a storage of a function for anything but a statement: there, in its backward or in what that
 * defers, or to pass it on. */
static bool is_needed(const struct program *program, const struct crossing *crossing, const struct step *but) {
  const struct function *function = crossing->function, *backward = function->backward;
  const struct crossing_list *crossings = &program->ranks.pipeline.crossings;
  if (crossing->storage->kind == STORAGE_RESULT) return true; /* of what calls the function */
  for (int i = 0; i < crossings->count; i++)
    if (crossings->items[i].storage == crossing->storage && crossings->items[i].from == crossing->to) return true;
  return function_reads(function, crossing->storage, crossing->to, but) ||
         function_reads(function->deferred, crossing->storage, crossing->to, but) ||
         function_reads(backward, crossing->storage, crossing->to, but) ||
         (backward != NULL && function_reads(backward->deferred, crossing->storage, crossing->to, but));
}

/* ---- Copies of what is received ---- */

/* Whether memory may be written before the first statement of the function that uses it: it is the function's own. */
static bool is_own(const struct storage *storage) {
  return storage->alias == NULL && (storage->kind == STORAGE_SAVED || storage->kind == STORAGE_SCRATCH);
}

static bool is_copy(const struct step *step) {
  const struct node *node = step->node;
  return step->callee == NULL && node->body.count == 1 && node->body.items[0]->kind == &op_copy &&
         !step->accumulate[0] && view_is_dense(&step->inputs[0], node->inputs[0]->shape) &&
         view_is_dense(&step->outputs[0], node->outputs[0]->shape) && step->outputs[0].storage != NULL &&
         step->inputs[0].storage != NULL;
}

/* What a statement copies, as it is received; NULL: something else. */
static struct crossing *received_by(struct program *program, const struct function *function, const struct step *step,
                                    int stage) {
  struct crossing_list *crossings = &program->ranks.pipeline.crossings;
  const struct view *from = &step->inputs[0];
  for (int i = 0; i < crossings->count; i++) {
    struct crossing *crossing = &crossings->items[i];
    if (crossing->function == function && crossing->to == stage && is_in(from, crossing->storage) &&
        from->offset == crossing->first && shape_count(step->node->inputs[0]->shape) == crossing->count)
      return crossing;
  }
  return NULL;
}

/* A stage's copies before all else that it does: what comes before them may be where they copy to. */
static bool receive_of_stage(struct program *program, struct function *function, int stage) {
  bool changed = false;
  for (int i = 0; i < function->n_steps; i++) {
    struct step *step = &function->steps[i];
    const bool staged = step->callee != NULL && step->callee->staged;
    if (!has(step, stage) || (!staged && step->stage != stage)) continue;
    struct crossing *crossing = is_copy(step) ? received_by(program, function, step, stage) : NULL;
    if (crossing == NULL || !is_own(storage_root(step->outputs[0].storage)) || is_needed(program, crossing, step))
      return changed;
    crossing->into = &step->outputs[0];
    step->stages &= ~(UINT32_C(1) << stage);
    changed = true;
  }
  return changed;
}

void receive_in_place(struct program *program) {
  bool changed = false;
  for (int i = 0; i < program->functions.count; i++)
    for (int k = 0; k < program->ranks.pipeline.stages && program->functions.items[i]->staged; k++)
      changed |= receive_of_stage(program, program->functions.items[i], k);
  if (changed) drop_unused_kernels(program);
}
