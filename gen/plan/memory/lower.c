#include "gen/plan/memory/lower.h"

#include <string.h>

#include "gen/ir/op.h"
#include "gen/ir/region.h"
#include "gen/ops/support/nodes.h"
#include "gen/plan/graph/fuse.h"

static struct step *new_step(struct layout_pass *pass, struct node *node) {
  struct function *function = pass->function;
  function->steps =
      arena_grow(pass->arena, function->steps, function->n_steps, &function->steps_capacity, sizeof *function->steps);
  struct step *step = &function->steps[function->n_steps++];
  *step = (struct step){.node = node, .deferred = pass->deferred};
  step->outputs = arena_alloc(pass->arena, ((size_t)node->n_outputs + 1) * sizeof *step->outputs);
  step->inputs = arena_alloc(pass->arena, ((size_t)node->n_inputs + 1) * sizeof *step->inputs);
  step->accumulate = arena_alloc(pass->arena, ((size_t)node->n_outputs + 1) * sizeof(bool));
  return step;
}

/* A step that copies `value` from one view to another, element by element of its shape. */
static void add_copy(struct layout_pass *pass, struct value *value, struct view from, struct view to, bool accumulate) {
  struct graph *graph = pass->program->graph;
  struct node *part = node_new(graph, &op_copy, &value, 1, (struct location){0});
  part->region = pass->region;
  struct value *copy = node_output(graph, part, value->shape, value->dtype);
  copy->name = value->name;
  struct step *step = new_step(pass, fuse_alone(graph, part));
  step->inputs[0] = from;
  step->outputs[0] = to;
  step->accumulate[0] = accumulate;
}

static struct view dense_copy(struct layout_pass *pass, struct value *value, struct view from) {
  const char *name = arena_printf(pass->arena, "%s_dense_%d", value->name, pass->function->storages.count);
  struct storage *storage = new_storage(pass, STORAGE_SCRATCH, name, value->dtype, shape_count(value->shape), 1);
  struct view to = dense_view(storage, 0, value->shape);
  add_copy(pass, value, from, to, false);
  return to;
}

static void lower_view(struct layout_pass *pass, const struct node *node) {
  struct value *input = node->inputs[0], *output = node->outputs[0];
  struct view from = *view_of(pass->program, input), wanted = *view_of(pass->program, output);
  struct view seen = {.storage = from.storage};
  int64_t offset = 0;
  bool sayable = node->kind->layout.view(node, from.strides, &offset, seen.strides);
  seen.offset = from.offset + offset;
  if (wanted.storage == NULL && sayable) {
    *view_of(pass->program, output) = seen;
  } else if (wanted.storage == NULL || !sayable) {
    if (wanted.storage == NULL) wanted = fresh_view(pass, output);
    struct view under = {.storage = wanted.storage, .offset = wanted.offset};
    node->kind->layout.unview(node, wanted.strides, under.strides);
    if (!same_view(&under, &from, input->shape)) add_copy(pass, input, from, under, false);
    *view_of(pass->program, output) = wanted;
  } else if (!same_view(&seen, &wanted, output->shape)) {
    add_copy(pass, output, seen, wanted, false);
  }
}

static void lower_parts(struct layout_pass *pass, const struct node *node) {
  struct view whole = *view_of(pass->program, node->outputs[0]);
  for (int i = 0; i < node->n_inputs; i++) {
    struct view part = {.storage = whole.storage}, from = *view_of(pass->program, node->inputs[i]);
    node->kind->layout.part(node, i, whole.strides, &part.offset, part.strides);
    part.offset += whole.offset;
    if (!same_view(&part, &from, node->inputs[i]->shape)) add_copy(pass, node->inputs[i], from, part, false);
  }
}

static struct view input_view(struct layout_pass *pass, const struct node *node, int index) {
  struct value *value = node->inputs[index];
  struct view view = *view_of(pass->program, value);
  bool accepted = node->kind->class == OP_ELEMENTWISE || view_is_dense(&view, value->shape) ||
                  (node->kind->layout.accepts != NULL && node->kind->layout.accepts(node, false, index, view.strides));
  bool aligned = !reaches_library(node) || view.storage == NULL || is_aligned(pass, &view);
  return accepted && aligned ? view : dense_copy(pass, value, view);
}

/* Whether the node adds to what is there, and all that it adds is its input, in a part of the output. */
static bool adds_part(const struct layout_pass *pass, const struct node *node) {
  return node->kind->layout.part != NULL && node->outputs[0]->id < pass->n_values &&
         pass->accumulate[node->outputs[0]->id];
}

static void lower_added_part(struct layout_pass *pass, const struct node *node) {
  const struct view whole = *view_of(pass->program, node->outputs[0]);
  struct view part = {.storage = whole.storage};
  node->kind->layout.part(node, 0, whole.strides, &part.offset, part.strides);
  part.offset += whole.offset;
  add_copy(pass, node->inputs[0], *view_of(pass->program, node->inputs[0]), part, true);
}

static void lower_kernel(struct layout_pass *pass, struct node *node) {
  if (adds_part(pass, node)) {
    lower_added_part(pass, node);
    return;
  }
  struct view *inputs = arena_alloc(pass->arena, ((size_t)node->n_inputs + 1) * sizeof *inputs);
  for (int i = 0; i < node->n_inputs; i++) inputs[i] = input_view(pass, node, i);
  struct step *step = new_step(pass, node);
  bool assigns = op_assigns(node->kind) && !node->discards;
  step->inputs = inputs;
  for (int i = 0; i < node->n_outputs; i++) {
    const struct value *output = node->outputs[i];
    int assigned = assigns ? node->kind->memory.assigns[op_described(node->kind, i)] : 0;
    if (assigned > 0) *view_of(pass->program, output) = inputs[assigned - 1];
    if (view_of(pass->program, output)->storage == NULL) {
      struct view fresh = fresh_view(pass, output);
      *view_of(pass->program, output) = fresh;
    }
    step->outputs[i] = *view_of(pass->program, output);
    step->accumulate[i] = output->id < pass->n_values && pass->accumulate[output->id];
  }
}

/* The row in which an input is carried, made by direct_carries. */
static struct storage *carried_row(const struct layout_pass *pass, const struct node *node, int input) {
  for (int i = 0; i < pass->function->storages.count; i++) {
    struct storage *storage = pass->function->storages.items[i];
    if (storage->carrier == node && storage->carried_input == input) return storage;
  }
  return NULL;
}

static void lower_call_input(struct layout_pass *pass, struct node *node, int index, struct view *input) {
  const struct call *call = node->call;
  struct value *value = node->inputs[index];
  *input = *view_of(pass->program, value);
  if (call->count > 1 && call->carry[index] >= 0) {
    struct storage *row = carried_row(pass, node, index);
    struct view first = dense_view(row, first_copy(call, row->copies) * row->count, value->shape);
    if (!same_view(input, &first, value->shape)) add_copy(pass, value, *input, first, false);
    *input = first;
  } else if ((call->stacked == NULL || !call->stacked[index]) &&
             !(view_is_dense(input, value->shape) && is_aligned(pass, input))) {
    *input = dense_copy(pass, value, *input);
  }
}

/* The final copy of a carried result, or memory of its own; and a copy of it where it was wanted elsewhere. */
static struct view call_output(struct layout_pass *pass, struct node *node, int index) {
  const struct call *call = node->call;
  struct value *value = node->outputs[index];
  for (int i = 0; i < call->callee->inputs.count && call->count > 1; i++) {
    if (call->carry[i] != index) continue;
    struct storage *row = carried_row(pass, node, i);
    return dense_view(row, final_copy(call, row->copies) * row->count, value->shape);
  }
  struct view wanted = *view_of(pass->program, value);
  return wanted.storage != NULL ? wanted : fresh_view(pass, value);
}

static void lower_call(struct layout_pass *pass, struct node *node) {
  struct function *callee = function_of(pass->program, node->call->callee);
  int n_results = node->call->callee->results.count;
  struct view *inputs = arena_alloc(pass->arena, ((size_t)node->n_inputs + 1) * sizeof *inputs);
  for (int i = 0; i < node->n_inputs; i++) lower_call_input(pass, node, i, &inputs[i]);
  int at = (int)(new_step(pass, node) - pass->function->steps);
  pass->function->steps[at].inputs = inputs;
  pass->function->steps[at].callee = callee;
  for (int i = 0; i < n_results; i++) {
    struct view made = call_output(pass, node, i);
    struct view *wanted = view_of(pass->program, node->outputs[i]);
    pass->function->steps[at].outputs[i] = made;
    if (wanted->storage != NULL && wanted->storage != made.storage)
      add_copy(pass, node->outputs[i], made, *wanted, false);
    else
      *wanted = made;
  }
  pass->function->random |= callee->random;
}

static struct storage *storage_at(const struct layout_pass *pass, enum storage_kind kind, int nth) {
  for (int i = 0; i < pass->function->storages.count; i++)
    if (pass->function->storages.items[i]->kind == kind && nth-- == 0) return pass->function->storages.items[i];
  return NULL;
}

/* A value that could not be written where it was wanted is copied there. */
static void deliver(struct layout_pass *pass, struct value *value, struct storage *storage, bool accumulate) {
  struct view from = *view_of(pass->program, value);
  if (from.storage != storage) add_copy(pass, value, from, dense_view(storage, 0, value->shape), accumulate);
}

static const struct parameter *parameter_of(const struct layout_pass *pass, const struct parameter_gradient *gradient) {
  return &pass->region->forward->parameters.items[gradient->parameter];
}

/* Gradients are delivered as soon as they are made: the first contribution to a parameter writes, the others add. */
static void deliver_gradients(struct layout_pass *pass, const struct node *node) {
  for (int i = 0, stored = 0; i < pass->region->gradients.count; i++) {
    const struct parameter_gradient *gradient = &pass->region->gradients.items[i];
    if (parameter_of(pass, gradient)->in_backward) continue;
    struct storage *storage = storage_at(pass, STORAGE_GRADIENT, stored++);
    if (node != NULL ? node_makes(node, gradient->value) : !is_local(pass, gradient->value))
      deliver(pass, gradient->value, storage, gradient->accumulate);
  }
}

/* ---- Updates within the backward ---- */

/* The step after which a parameter may change: its gradient is whole, and nothing reads the parameter any more. */
static int last_use(const struct layout_pass *pass, int parameter, const struct storage *gradient) {
  int last = -1;
  for (int s = 0; s < pass->function->n_steps; s++) {
    const struct step *step = &pass->function->steps[s];
    for (int i = 0; i < step->node->n_outputs; i++)
      if (step->outputs[i].storage == gradient) last = s;
    for (int i = 0; i < step->node->n_inputs; i++) {
      const struct storage *storage = step->inputs[i].storage;
      if (storage != NULL && storage->kind == STORAGE_WEIGHT && storage->index == parameter) last = s;
    }
  }
  return last;
}

/* Moves the newest step to right after step `after`. */
static void move_newest(struct function *function, int after) {
  struct step newest = function->steps[function->n_steps - 1];
  int first = after + 1;
  memmove(function->steps + first + 1, function->steps + first,
          (size_t)(function->n_steps - 1 - first) * sizeof newest);
  function->steps[first] = newest;
}

static void add_update(struct layout_pass *pass, const struct parameter_gradient *gradient) {
  struct graph *graph = pass->program->graph;
  struct value *value = gradient->value, *weight = parameter_of(pass, gradient)->value;
  struct view from = *view_of(pass->program, value);
  if (!view_is_dense(&from, value->shape)) from = dense_copy(pass, value, from);
  int after = last_use(pass, gradient->parameter, from.storage);
  struct node *node = node_new(graph, &op_step_tensor, &value, 1, weight->region->where);
  node->region = pass->region;
  struct value *updated = node_output(graph, node, weight->shape, weight->dtype);
  updated->name = weight->name;
  struct step *step = new_step(pass, node);
  struct storage *storage = operand_storage(pass, STORAGE_WEIGHT, weight, gradient->parameter);
  step->inputs[0] = from;
  step->outputs[0] = dense_view(storage, 0, weight->shape);
  move_newest(pass->function, after);
}

void lower_nodes(struct layout_pass *pass) {
  struct region *region = pass->region;
  deliver_gradients(pass, NULL);
  for (int i = 0; i < region->nodes.count; i++) {
    struct node *node = region->nodes.items[i];
    pass->function->random |= node->kind->kernel.random;
    pass->deferred = node->deferred;
    switch (node->kind->class) {
    case OP_PARTS:
      lower_parts(pass, node);
      break;
    case OP_VIEW:
      lower_view(pass, node);
      break;
    case OP_CALL:
      lower_call(pass, node);
      break;
    case OP_ELEMENTWISE:
    case OP_KERNEL:
      lower_kernel(pass, node);
      break;
    }
    deliver_gradients(pass, node);
  }
  pass->deferred = false;
  for (int i = 0; i < region->results.count; i++)
    deliver(pass, region->results.items[i], storage_at(pass, STORAGE_RESULT, i), false);
  for (int i = 0; i < region->gradients.count; i++)
    if (parameter_of(pass, &region->gradients.items[i])->in_backward) add_update(pass, &region->gradients.items[i]);
}
