#include "gen/plan/memory/deferred.h"

#include <string.h>

#include "gen/ir/names.h"

bool reads_operand(const struct function *function, enum storage_kind kind, int index) {
  for (int s = 0; s < function->n_steps; s++) {
    const struct step *step = &function->steps[s];
    for (int i = 0; i < step->node->n_inputs; i++) {
      const struct storage *storage = step->inputs[i].storage;
      if (storage != NULL && storage->kind == kind && storage->index == index) return true;
    }
    for (int i = 0; step->callee != NULL && i < step->node->n_outputs; i++) { /* a deferred callee reads results */
      const struct storage *storage = step->outputs[i].storage;
      if (storage != NULL && storage->kind == kind && storage->index == index) return true;
    }
  }
  return false;
}

static void push_step(struct layout_pass *pass, struct function *function, struct step step) {
  function->steps =
      arena_grow(pass->arena, function->steps, function->n_steps, &function->steps_capacity, sizeof *function->steps);
  function->steps[function->n_steps++] = step;
}

/* The call of a callee's deferred function, of what that reads alone. */
static struct step deferred_call(struct layout_pass *pass, const struct step *step) {
  const struct node *node = step->node;
  struct step call = {.node = step->node, .callee = step->callee->deferred, .deferred = true};
  call.inputs = arena_alloc(pass->arena, ((size_t)node->n_inputs + 1) * sizeof *call.inputs);
  call.outputs = arena_alloc(pass->arena, ((size_t)node->n_outputs + 1) * sizeof *call.outputs);
  call.accumulate = arena_alloc(pass->arena, ((size_t)node->n_outputs + 1) * sizeof(bool));
  for (int i = 0; i < node->n_inputs; i++)
    if (reads_operand(call.callee, STORAGE_INPUT, i)) call.inputs[i] = step->inputs[i];
  for (int i = 0; i < node->n_outputs; i++)
    if (reads_operand(call.callee, STORAGE_RESULT, i)) call.outputs[i] = step->outputs[i];
  return call;
}

static bool touches(const struct function *function, const struct storage *storage) {
  for (int s = 0; s < function->n_steps; s++) {
    const struct step *step = &function->steps[s];
    for (int i = 0; i < step->node->n_inputs; i++)
      if (step->inputs[i].storage == storage) return true;
    for (int i = 0; i < step->node->n_outputs; i++)
      if (step->outputs[i].storage == storage) return true;
  }
  return false;
}

static bool is_saved_name(const void *context, const char *name) {
  const struct function *forward = context;
  for (int i = 0; i < forward->storages.count; i++)
    if (strcmp(forward->storages.items[i]->name, name) == 0) return true;
  return false;
}

/* Memory of the function as it was belongs to the one that uses it; what one passes to the other is saved. */
static void divide_storages(struct layout_pass *pass, struct function *function) {
  struct function *deferred = function->deferred;
  const struct storage_list all = function->storages;
  function->storages = (struct storage_list){0};
  for (int i = 0; i < all.count; i++) {
    struct storage *storage = all.items[i];
    bool now = touches(function, storage), later = touches(deferred, storage);
    if (storage->kind != STORAGE_SCRATCH) {
      ARENA_PUSH(pass->arena, function->storages, storage);
      if (later) ARENA_PUSH(pass->arena, deferred->storages, storage);
    } else if (now && later) {
      const struct function *forward = function->forward;
      storage->kind = STORAGE_SAVED;
      storage->function = function->forward;
      storage->name = free_name(pass->arena, storage->name, is_saved_name, forward);
      ARENA_PUSH(pass->arena, function->forward->storages, storage);
    } else {
      storage->function = later ? deferred : function;
      ARENA_PUSH(pass->arena, storage->function->storages, storage);
    }
  }
}

static bool draws(const struct function *function) {
  for (int s = 0; s < function->n_steps; s++) {
    const struct step *step = &function->steps[s];
    if (step->callee != NULL ? step->callee->random : step->node->kind->kernel.random) return true;
  }
  return false;
}

static struct function *new_deferred(struct layout_pass *pass) {
  struct function *function = arena_alloc(pass->arena, sizeof *function);
  function->region = pass->region;
  function->forward = pass->function->forward;
  function->name = arena_printf(pass->arena, "%s_weight_gradients", pass->region->forward->name);
  ARENA_PUSH(pass->arena, pass->program->functions, function);
  return function;
}

void split_deferred(struct layout_pass *pass) {
  struct function *function = pass->function;
  const struct step *steps = function->steps;
  const int n_steps = function->n_steps;
  bool defers = false;
  for (int i = 0; i < n_steps; i++)
    defers |= steps[i].deferred || (steps[i].callee != NULL && steps[i].callee->deferred != NULL);
  if (!defers) return;
  function->deferred = new_deferred(pass);
  function->steps = NULL;
  function->n_steps = function->steps_capacity = 0;
  for (int i = 0; i < n_steps; i++) {
    struct function *to = steps[i].deferred ? function->deferred : function;
    const struct function *callee = steps[i].callee;
    if (callee == NULL || callee->n_steps > 0) push_step(pass, to, steps[i]);
    if (callee != NULL && callee->deferred != NULL) push_step(pass, function->deferred, deferred_call(pass, &steps[i]));
  }
  divide_storages(pass, function);
  function->random = draws(function);
  function->deferred->random = draws(function->deferred);
}
