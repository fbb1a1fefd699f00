#include "tests/plan/machine.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "gen/ir/op.h"
#include "gen/program/storage.h"
#include "gen/program/weights.h"

enum { ELEMENT = 4 }; /* bytes: each float32 and int32 is one double here */

/* One run of a function. */
struct activation {
  const struct function *function;
  const char **scopes; /* full names */
  double **inputs, **results;
  double *saved, *scratch;
};

static const struct function *saving(const struct function *function) {
  return function->forward != NULL ? function->forward : function;
}

static double *poisoned(struct machine *machine, int64_t count) {
  double *memory = arena_alloc(machine->arena, ((size_t)count + 1) * sizeof *memory);
  for (int64_t i = 0; i < count; i++) memory[i] = NAN;
  return memory;
}

/* ---- Where things are, counted here a second time ---- */

static int64_t slot_offset(const struct function *function, int slot) {
  int64_t bytes = 0;
  for (int i = 0; i < slot; i++) bytes += arena_aligned(function->slots[i].bytes);
  return bytes / ELEMENT;
}

static int64_t saved_offset(const struct function *function, const struct storage *storage) {
  int64_t bytes = 0;
  for (int i = 0; i < function->storages.count; i++) {
    const struct storage *at = function->storages.items[i];
    if (at == storage) return bytes / ELEMENT;
    if (at->kind == STORAGE_SAVED && at->alias == NULL) bytes += arena_aligned(storage_bytes(at));
  }
  assert(!"the storage is one of the function's");
  return 0;
}

static int64_t callee_offset(const struct function *function, const struct function *callee) {
  for (int i = 0; i < function->n_slots; i++)
    for (int k = 0; k < function->slots[i].n_callees; k++)
      if (function->slots[i].callees[k] == callee) return slot_offset(function, i);
  assert(callee->scratch_bytes == 0);
  return 0;
}

static double *weight_memory(struct machine *machine, const struct activation *run, const struct storage *storage) {
  const struct region *region = saving(run->function)->region;
  const struct parameter *parameter = &region->parameters.items[storage->index];
  const char *scope = run->scopes[parameter->scope];
  const char *name = scope[0] == '\0' ? parameter->path : arena_printf(machine->arena, "%s.%s", scope, parameter->path);
  if (storage->kind == STORAGE_WEIGHT) return (double *)machine->parameter(machine->context, name, parameter);
  for (int i = 0; i < machine->program->weights->count; i++)
    if (strcmp(machine->program->weights->items[i].path, name) == 0) return machine->gradients[i];
  assert(!"the parameter is one of the program's");
  return NULL;
}

static double *memory_of(struct machine *machine, const struct activation *run, const struct view *view) {
  struct storage *root = storage_root(view->storage);
  double *base = NULL;
  if (root->kind == STORAGE_INPUT) base = run->inputs[root->index];
  if (root->kind == STORAGE_RESULT) base = run->results[root->index];
  if (root->kind == STORAGE_SAVED && root->alias == NULL) base = run->saved + saved_offset(saving(run->function), root);
  if (root->alias != NULL) base = machine->gradient_memory + root->alias->at / ELEMENT;
  if (root->kind == STORAGE_SCRATCH) base = run->scratch + slot_offset(run->function, root->slot);
  if (root->kind == STORAGE_WEIGHT || root->kind == STORAGE_GRADIENT) base = weight_memory(machine, run, root);
  assert(base != NULL);
  return base + view->offset;
}

/* ---- Kernels ---- */

static int64_t at_strides(struct shape shape, const int64_t *strides, int64_t index) {
  int64_t offset = 0;
  for (int d = shape.rank - 1; d >= 0; d--) {
    offset += index % shape.dim[d] * strides[d];
    index /= shape.dim[d];
  }
  return offset;
}

static double *gather(struct machine *machine, const struct activation *run, const struct view *view,
                      struct shape shape) {
  const double *memory = memory_of(machine, run, view);
  double *dense = poisoned(machine, shape_count(shape));
  for (int64_t i = 0; i < shape_count(shape); i++) dense[i] = memory[at_strides(shape, view->strides, i)];
  return dense;
}

static void scatter(struct machine *machine, const struct activation *run, const struct view *view, struct shape shape,
                    const double *dense, bool add) {
  double *memory = memory_of(machine, run, view);
  for (int64_t i = 0; i < shape_count(shape); i++) {
    double *to = &memory[at_strides(shape, view->strides, i)];
    *to = add ? *to + dense[i] : dense[i];
  }
}

static const double *part_operand(const struct node *node, double **inputs, double **parts, const struct value *value) {
  for (int i = 0; i < node->n_inputs; i++)
    if (node->inputs[i] == value) return inputs[i];
  for (int i = 0; i < node->body.count; i++)
    if (node->body.items[i]->outputs[0] == value) return parts[i];
  assert(!"a part uses inputs and parts before it");
  return NULL;
}

static void run_parts(struct machine *machine, const struct node *node, double **inputs, double **outputs) {
  double **parts = arena_alloc(machine->arena, (size_t)node->body.count * sizeof *parts);
  for (int i = 0; i < node->body.count; i++) {
    const struct node *part = node->body.items[i];
    const double *operands[8];
    for (int k = 0; k < part->n_inputs; k++) operands[k] = part_operand(node, inputs, parts, part->inputs[k]);
    parts[i] = poisoned(machine, shape_count(part->outputs[0]->shape));
    part->kind->reference.evaluate(part, operands, &parts[i]);
    for (int o = 0; o < node->n_outputs; o++)
      if (node->outputs[o] == part->outputs[0]) outputs[o] = parts[i];
  }
}

static void run_kernel(struct machine *machine, const struct activation *run, const struct step *step) {
  const struct node *node = step->node;
  double **inputs = arena_alloc(machine->arena, ((size_t)node->n_inputs + 1) * sizeof *inputs);
  double **outputs = arena_alloc(machine->arena, ((size_t)node->n_outputs + 1) * sizeof *outputs);
  for (int i = 0; i < node->n_inputs; i++) inputs[i] = gather(machine, run, &step->inputs[i], node->inputs[i]->shape);
  for (int i = 0; i < node->n_outputs; i++) outputs[i] = poisoned(machine, shape_count(node->outputs[i]->shape));
  if (node->body.count > 0)
    run_parts(machine, node, inputs, outputs);
  else
    node->kind->reference.evaluate(node, (const double *const *)inputs, outputs);
  for (int i = 0; i < node->n_outputs; i++)
    scatter(machine, run, &step->outputs[i], node->outputs[i]->shape, outputs[i], step->accumulate[i]);
}

/* ---- Calls ---- */

static void run_function(struct machine *machine, const struct activation *run);

/* The copy of a row that an iteration uses; a row of two is used in turn. */
static double *row_copy(struct machine *machine, const struct activation *run, const struct view *view, int index) {
  const struct storage *row = view->storage;
  struct view start = {.storage = view->storage};
  return memory_of(machine, run, &start) + (row->copies == 2 ? index % 2 : index) * row->count;
}

static void run_iteration(struct machine *machine, const struct activation *run, const struct step *step, int k) {
  const struct call *call = step->node->call;
  struct arena *arena = machine->arena;
  bool back = call->forward != NULL, many = call->count > 1;
  const struct region *callee = call->callee;
  struct activation inner = {.function = step->callee};
  inner.scopes = arena_alloc(arena, ((size_t)callee->n_scopes + 1) * sizeof *inner.scopes);
  for (int i = 0; i < callee->n_scopes; i++) {
    const struct scope *scope = call->scopes[i * call->count + k];
    const char *outer = run->scopes[scope->formal];
    bool joined = outer[0] != '\0' && scope->path[0] != '\0';
    inner.scopes[i] = joined ? arena_printf(arena, "%s.%s", outer, scope->path) : outer[0] ? outer : scope->path;
  }
  inner.inputs = arena_alloc(arena, ((size_t)callee->inputs.count + 1) * sizeof *inner.inputs);
  for (int i = 0; i < callee->inputs.count; i++) {
    if (!step->callee->uses_inputs[i]) continue;
    bool carried = many && call->carry[i] >= 0, stacked = call->stacked != NULL && call->stacked[i];
    inner.inputs[i] = carried   ? row_copy(machine, run, &step->inputs[i], k + (back ? 1 : 0))
                      : stacked ? row_copy(machine, run, &step->inputs[i], stacked_copy(&step->inputs[i], k))
                                : memory_of(machine, run, &step->inputs[i]);
  }
  inner.results = arena_alloc(arena, ((size_t)callee->results.count + 1) * sizeof *inner.results);
  for (int i = 0; i < callee->results.count; i++)
    inner.results[i] = many ? row_copy(machine, run, &step->outputs[i], k + (back ? 0 : 1))
                            : memory_of(machine, run, &step->outputs[i]);
  if (saving(step->callee)->saved_bytes > 0) {
    struct view frame = {.storage = frame_of(run->function, back ? call->forward : step->node)};
    inner.saved = memory_of(machine, run, &frame) + k * saving(step->callee)->saved_bytes / ELEMENT;
  }
  if (step->callee->scratch_bytes > 0) inner.scratch = run->scratch + callee_offset(run->function, step->callee);
  run_function(machine, &inner);
}

static void run_function(struct machine *machine, const struct activation *run) {
  const struct function *function = run->function;
  assert(slot_offset(function, function->n_slots) * ELEMENT == function->scratch_bytes);
  for (int64_t i = 0; i < function->scratch_bytes / ELEMENT; i++) run->scratch[i] = NAN;
  for (int s = 0; s < function->n_steps; s++) {
    const struct step *step = &function->steps[s];
    if (step->callee == NULL) {
      run_kernel(machine, run, step);
      continue;
    }
    int count = step->node->call->count;
    for (int i = 0; i < count; i++)
      run_iteration(machine, run, step, step->node->call->forward != NULL ? count - 1 - i : i);
  }
}

/* ---- The program ---- */

/* A run of an entry function: its inputs are the entry's of the same name. */
static struct activation entry_run(struct machine *machine, const struct function *function, double *saved) {
  const struct region *entry = machine->program->graph->entry, *region = function->region;
  struct activation run = {.function = function, .saved = saved};
  run.scopes = arena_alloc(machine->arena, ((size_t)region->n_scopes + 1) * sizeof *run.scopes);
  for (int i = 0; i < region->n_scopes; i++) run.scopes[i] = "";
  run.inputs = arena_alloc(machine->arena, ((size_t)region->inputs.count + 1) * sizeof *run.inputs);
  for (int i = 0; i < region->inputs.count; i++)
    for (int k = 0; k < entry->inputs.count; k++)
      if (strcmp(region->inputs.items[i]->name, entry->inputs.items[k]->name) == 0)
        run.inputs[i] = (double *)machine->inputs[k];
  run.scratch = poisoned(machine, function->scratch_bytes / ELEMENT);
  return run;
}

/* What gradients that others add to start from: zeros, put there when the forward has run, as it may keep values in
 * their memory. */
static void clear_gradients(struct machine *machine) {
  const struct program *program = machine->program;
  for (int i = 0; i < program->weights->count; i++) {
    bool zero = program->weights->items[i].zero || program->job->accumulation.num_steps > 1;
    if (!zero || machine->gradients[i] == NULL) continue;
    memset(machine->gradients[i], 0, (size_t)shape_count(program->weights->items[i].parameter->shape) * sizeof(double));
  }
}

/* Nothing may stand in the padding between gradients. */
static void check_padding(struct machine *machine, int64_t count) {
  const struct program *program = machine->program;
  for (int64_t at = 0; at < count; at++) {
    bool within = false;
    for (int i = 0; i < program->weights->count && !within; i++) {
      int64_t first = program->weights->items[i].gradient / ELEMENT, bytes = program->weights->items[i].gradient;
      within = bytes >= 0 && at >= first && at < first + shape_count(program->weights->items[i].parameter->shape);
    }
    assert(within || isnan(machine->gradient_memory[at]));
  }
}

void machine_run(struct machine *machine) {
  struct program *program = machine->program;
  int64_t count = weights_type(program->gradients)->bytes / ELEMENT;
  machine->gradient_memory = poisoned(machine, count);
  machine->gradients = arena_alloc(machine->arena, ((size_t)program->weights->count + 1) * sizeof *machine->gradients);
  for (int i = 0; i < program->weights->count; i++)
    if (program->weights->items[i].gradient >= 0)
      machine->gradients[i] = machine->gradient_memory + program->weights->items[i].gradient / ELEMENT;
  double *saved = poisoned(machine, program->entry.forward->saved_bytes / ELEMENT), *loss = &machine->loss;
  struct activation forward = entry_run(machine, program->entry.forward, saved);
  struct activation backward = entry_run(machine, program->entry.backward, saved);
  *(program->entry.loss_in_backward ? &backward.results : &forward.results) = &loss;
  run_function(machine, &forward);
  clear_gradients(machine);
  run_function(machine, &backward);
  check_padding(machine, count);
}
