#include "gen/plan/memory/signatures.h"

static void use_view(struct function *function, const struct view *view) {
  const struct storage *storage = view->storage;
  if (storage == NULL) return;
  const struct region *named = function->region->forward != NULL ? function->region->forward : function->region;
  if (storage->kind == STORAGE_WEIGHT) {
    bool *uses = dtype_is_bits16(storage->dtype) ? function->uses_bits16_weights : function->uses_weights;
    uses[named->parameters.items[storage->index].scope] = true;
  }
  if (storage->kind == STORAGE_GRADIENT) function->uses_gradients[named->parameters.items[storage->index].scope] = true;
  if (storage->kind == STORAGE_INPUT) function->uses_inputs[storage->index] = true;
  if (storage->kind == STORAGE_RESULT) function->reads_results[storage->index] = true;
}

/* What a step's output means for the weights: it may be one, or the row of the optimizer's table for one. */
static void write_view(struct function *function, const struct step *step, const struct view *view) {
  const struct region *named = function->region->forward != NULL ? function->region->forward : function->region;
  if (view->storage == NULL || view->storage->kind != STORAGE_WEIGHT) return;
  bool *uses = step->node->kind->kernel.updates ? function->uses_rows : function->writes_weights;
  uses[named->parameters.items[view->storage->index].scope] = true;
}

static void use_callee(struct function *function, const struct step *step) {
  const struct call *call = step->node->call;
  for (int i = 0; i < call->callee->n_scopes; i++) {
    int formal = call->scopes[i * call->count]->formal;
    function->uses_weights[formal] |= step->callee->uses_weights[i];
    function->uses_bits16_weights[formal] |= step->callee->uses_bits16_weights[i];
    function->uses_gradients[formal] |= step->callee->uses_gradients[i];
    function->writes_weights[formal] |= step->callee->writes_weights[i];
    function->uses_rows[formal] |= step->callee->uses_rows[i];
  }
  function->updates |= step->callee->updates;
}

void plan_signatures(struct program *program) {
  for (int f = 0; f < program->functions.count; f++) {
    struct function *function = program->functions.items[f];
    const struct region *region = function->region;
    function->uses_weights = arena_alloc(program->arena, ((size_t)region->n_scopes + 1) * sizeof(bool));
    function->uses_bits16_weights = arena_alloc(program->arena, ((size_t)region->n_scopes + 1) * sizeof(bool));
    function->uses_gradients = arena_alloc(program->arena, ((size_t)region->n_scopes + 1) * sizeof(bool));
    function->writes_weights = arena_alloc(program->arena, ((size_t)region->n_scopes + 1) * sizeof(bool));
    function->uses_rows = arena_alloc(program->arena, ((size_t)region->n_scopes + 1) * sizeof(bool));
    function->reads_results = arena_alloc(program->arena, ((size_t)region->results.count + 1) * sizeof(bool));
    function->uses_inputs = arena_alloc(program->arena, ((size_t)region->inputs.count + 1) * sizeof(bool));
    for (int s = 0; s < function->n_steps; s++) {
      const struct step *step = &function->steps[s];
      if (step->callee != NULL) use_callee(function, step);
      for (int i = 0; i < step->node->n_inputs; i++)
        if (step->callee == NULL || step->callee->uses_inputs[i]) use_view(function, &step->inputs[i]);
      for (int i = 0; i < step->node->n_outputs; i++) {
        if (!step->node->kind->kernel.updates) use_view(function, &step->outputs[i]);
        write_view(function, step, &step->outputs[i]);
      }
      function->updates |= step->node->kind->kernel.updates;
    }
  }
}
