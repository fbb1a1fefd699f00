#include "gen/plan/layout.h"

#include <string.h>

#include "gen/ir/op.h"
#include "gen/ir/region.h"
#include "gen/plan/fuse.h"
#include "gen/plan/uses.h"

struct pass {
  struct program *program;
  struct arena *arena;
  struct function *function; /* at hand */
  struct region *region;
  int *uses;   /* by value id, over the whole graph */
  bool *saved; /* by value id: the backward region needs it */
  bool *accumulate; /* by value id: its producer adds to what stands there */
  int n_values;     /* of the graph when the pass began */
};

/* ---- Places and storages ---- */

struct place *place_of(struct program *program, const struct value *value) {
  if (value->id >= program->n_places) {
    int wider = value->id * 2 + 64;
    struct place *grown = arena_alloc(program->arena, (size_t)wider * sizeof *grown);
    if (program->n_places > 0) memcpy(grown, program->places, (size_t)program->n_places * sizeof *grown);
    program->places = grown;
    program->n_places = wider;
  }
  return &program->places[value->id];
}

bool place_is_dense(const struct place *place, struct shape shape) {
  int64_t dense[MAX_RANK];
  shape_dense_strides(shape, dense);
  for (int i = 0; i < shape.rank; i++)
    if (shape.dim[i] > 1 && place->strides[i] != dense[i]) return false;
  return true;
}

static struct storage *new_storage(struct pass *pass, enum storage_kind kind, const char *name, enum dtype dtype,
                                   int64_t count, int copies) {
  struct storage *storage = arena_alloc(pass->arena, sizeof *storage);
  *storage = (struct storage){.kind = kind,
                              .name = name,
                              .dtype = dtype,
                              .count = count,
                              .copies = copies,
                              .function = pass->function,
                              .first = -1,
                              .last = -1,
                              .slot = -1};
  ARENA_PUSH(pass->arena, pass->function->storages, storage);
  return storage;
}

static struct place dense_place(struct storage *storage, int64_t offset, struct shape shape) {
  struct place place = {.storage = storage, .offset = offset};
  shape_dense_strides(shape, place.strides);
  return place;
}

static struct storage *operand_storage(struct pass *pass, enum storage_kind kind, const struct value *value,
                                       int index) {
  struct storage *storage = new_storage(pass, kind, value->name, value->dtype, shape_count(value->shape), 1);
  storage->index = index;
  return storage;
}

static bool is_saved(const struct pass *pass, const struct value *value) {
  return value->id < pass->n_values && pass->saved[value->id];
}

/* Whether a value is kept for backward, itself or through a view of it. */
static bool keeps_memory(const struct pass *pass, const struct value *value) {
  if (is_saved(pass, value)) return true;
  for (int i = 0; i < pass->region->nodes.count; i++) {
    const struct node *node = pass->region->nodes.items[i];
    if (node->kind->class == OP_VIEW && node->n_inputs == 1 && node->inputs[0] == value &&
        keeps_memory(pass, node->outputs[0]))
      return true;
  }
  return false;
}

/* New memory for a value that the function makes. */
static struct place fresh_place(struct pass *pass, const struct value *value) {
  enum storage_kind kind = keeps_memory(pass, value) ? STORAGE_SAVED : STORAGE_SCRATCH;
  return dense_place(operand_storage(pass, kind, value, 0), 0, value->shape);
}

static bool is_local(const struct pass *pass, const struct value *value) {
  return value->kind == VALUE_RESULT && value->region == pass->region;
}

/* ---- Where results are wanted: from the last node to the first ---- */

/* Whether the producer can write output `index` under these strides. */
static bool can_write(const struct node *node, int index, struct shape shape, const struct place *place) {
  if (node->kind->class == OP_ELEMENTWISE) return true;
  if (place_is_dense(place, shape)) return true;
  return node->kind->class == OP_KERNEL && node->kind->accepts != NULL &&
         node->kind->accepts(node, true, index, place->strides);
}

static bool can_accumulate(const struct node *node, int index) {
  return node->kind->class == OP_ELEMENTWISE || (node->kind->class == OP_KERNEL && node->kind->accumulates >> index & 1);
}

/* Makes the producer of `value` write to `place`, through views of its result; false, with nothing changed, when it
 * cannot. */
static bool direct(struct pass *pass, const struct value *value, struct place place, bool accumulate) {
  if (!is_local(pass, value) || place_of(pass->program, value)->storage != NULL) return false;
  bool temporary = place.storage->kind != STORAGE_SAVED;
  if (temporary && keeps_memory(pass, value)) return false;
  if (accumulate && pass->uses[value->id] > 1) return false;
  const struct node *node = value->producer;
  if (node->kind->class == OP_VIEW && node->kind->part == NULL) {
    struct place below = {.storage = place.storage, .offset = place.offset};
    if (node->kind->unview == NULL || !node->kind->unview(node, place.strides, below.strides)) return false;
    if (!direct(pass, node->inputs[0], below, accumulate)) return false;
  } else {
    if (node->kind->class == OP_CALL && node->call->count > 1) return false;
    if (!can_write(node, value->index, value->shape, &place)) return false;
    if (accumulate && !can_accumulate(node, value->index)) return false;
    if (accumulate) pass->accumulate[value->id] = true;
  }
  *place_of(pass->program, value) = place;
  return true;
}

static void direct_results(struct pass *pass) {
  struct region *region = pass->region;
  for (int i = 0; i < region->results.count; i++) {
    const struct value *value = region->results.items[i];
    struct storage *storage = operand_storage(pass, STORAGE_RESULT, value, i);
    if (!is_local(pass, value) || place_of(pass->program, value)->storage != NULL)
      storage->name = arena_printf(pass->arena, "%s_result_%d", value->name, i); /* it has its own name elsewhere */
    direct(pass, value, dense_place(storage, 0, value->shape), false);
  }
  for (int i = 0; i < region->gradients.count; i++) {
    const struct parameter_gradient *gradient = &region->gradients.items[i];
    struct storage *storage = operand_storage(pass, STORAGE_GRADIENT, gradient->value, gradient->parameter);
    direct(pass, gradient->value, dense_place(storage, 0, gradient->value->shape), gradient->accumulate);
  }
}

/* Whether strides can say the value when its producer writes densely. */
static bool comes_free(struct pass *pass, const struct value *value, int64_t *strides) {
  const struct place *place = place_of(pass->program, value);
  if (place->storage != NULL) {
    memcpy(strides, place->strides, sizeof place->strides);
    return true;
  }
  shape_dense_strides(value->shape, strides);
  if (!is_local(pass, value) || value->producer->kind->class != OP_VIEW || value->producer->kind->part != NULL)
    return true;
  int64_t below[MAX_RANK], offset;
  return comes_free(pass, value->producer->inputs[0], below) &&
         value->producer->kind->view(value->producer, below, &offset, strides);
}

/* A view that would need a copy: better its producer writes in the layout of the view, if it can. */
static void direct_view(struct pass *pass, const struct node *node) {
  const struct value *value = node->outputs[0];
  int64_t strides[MAX_RANK];
  if (place_of(pass->program, value)->storage != NULL || comes_free(pass, value, strides)) return;
  struct storage probe = {.kind = keeps_memory(pass, value) ? STORAGE_SAVED : STORAGE_SCRATCH};
  if (!direct(pass, value, dense_place(&probe, 0, value->shape), false)) return;
  struct storage *storage = fresh_place(pass, value).storage;
  const struct value *below = value;
  for (;; below = below->producer->inputs[0]) { /* the chain of views down to the producer */
    place_of(pass->program, below)->storage = storage;
    if (below->producer->kind->class != OP_VIEW || below->producer->kind->part != NULL) break;
  }
}

static void direct_parts(struct pass *pass, const struct node *node) {
  const struct value *whole = node->outputs[0];
  struct place *place = place_of(pass->program, whole);
  if (place->storage == NULL) {
    struct place fresh = fresh_place(pass, whole);
    place = place_of(pass->program, whole);
    *place = fresh;
  }
  struct place target = *place;
  for (int i = 0; i < node->n_inputs; i++) {
    struct place part = {.storage = target.storage};
    if (!node->kind->part(node, i, target.strides, &part.offset, part.strides)) continue;
    part.offset += target.offset;
    direct(pass, node->inputs[i], part, false);
  }
}

/* ---- Repeated calls: carried values lie in a row of copies ---- */

static int n_copies(const struct call *call, bool keeps) {
  return keeps ? call->count + 1 : 2;
}

/* The copy in which iteration 0 finds its input, and the one that holds the final result. Backward calls run from
 * the last iteration to the first. */
static int first_copy(const struct call *call, int copies) {
  return call->forward != NULL ? call->count % copies : 0;
}

static int final_copy(const struct call *call, int copies) {
  return call->forward != NULL ? 0 : call->count % copies;
}

static int history_index(const struct call *call, int input) {
  for (int h = 0; h < call->n_histories; h++)
    if (call->history[h] == input) return h;
  return -1;
}

/* Which call of its region a node is, counted in the forward region. */
static int call_number(const struct node *node) {
  const struct node *forward = node->call->forward != NULL ? node->call->forward : node;
  int number = 0;
  for (int i = 0; i < forward->region->nodes.count && forward->region->nodes.items[i] != forward; i++)
    number += forward->region->nodes.items[i]->call != NULL;
  return number;
}

static const char *row_name(struct pass *pass, const struct node *node, const struct value *formal) {
  const char *name = arena_printf(pass->arena, "%s_of_%s", formal->name, node->call->callee->name);
  int number = call_number(node);
  return number > 0 ? arena_printf(pass->arena, "%s_%d", name, number) : name;
}

static void direct_carries(struct pass *pass, struct node *node) {
  const struct call *call = node->call;
  for (int i = 0; i < call->callee->inputs.count; i++) {
    if (call->count == 1 || call->carry[i] < 0) continue;
    const struct value *formal = call->callee->inputs.items[i];
    int history = history_index(call, i), copies = n_copies(call, history >= 0);
    int64_t size = shape_count(formal->shape);
    struct value *kept = history >= 0 ? node->outputs[call->callee->results.count + history] : NULL;
    const char *name = kept != NULL ? kept->name
                                    : row_name(pass, node, formal);
    struct storage *row = new_storage(pass, kept != NULL ? STORAGE_SAVED : STORAGE_SCRATCH, name, formal->dtype, size,
                                      copies);
    row->carrier = node;
    row->carried_input = i;
    if (kept != NULL) *place_of(pass->program, kept) = dense_place(row, 0, kept->shape);
    const struct value *result = node->outputs[call->carry[i]];
    if (kept == NULL && keeps_memory(pass, result) && place_of(pass->program, result)->storage == NULL) {
      struct place own = fresh_place(pass, result);
      *place_of(pass->program, result) = own;
    }
    /* A short row is written over: what others read as well is copied into it. */
    if (kept != NULL || pass->uses[node->inputs[i]->id] == 1)
      direct(pass, node->inputs[i], dense_place(row, first_copy(call, copies) * size, formal->shape), false);
  }
}

static void direct_all(struct pass *pass) {
  direct_results(pass);
  for (int i = pass->region->nodes.count - 1; i >= 0; i--) {
    struct node *node = pass->region->nodes.items[i];
    if (node->kind->part != NULL) direct_parts(pass, node);
    else if (node->kind->class == OP_VIEW) direct_view(pass, node);
    else if (node->call != NULL) direct_carries(pass, node);
  }
}

/* ---- Steps: from the first node to the last ---- */

static struct step *new_step(struct pass *pass, struct node *node) {
  struct function *function = pass->function;
  function->steps = arena_grow(pass->arena, function->steps, function->n_steps, &function->steps_capacity,
                               sizeof *function->steps);
  struct step *step = &function->steps[function->n_steps++];
  *step = (struct step){.node = node};
  step->outputs = arena_alloc(pass->arena, ((size_t)node->n_outputs + 1) * sizeof *step->outputs);
  step->inputs = arena_alloc(pass->arena, ((size_t)node->n_inputs + 1) * sizeof *step->inputs);
  step->accumulate = arena_alloc(pass->arena, ((size_t)node->n_outputs + 1) * sizeof(bool));
  return step;
}

/* A step that copies `value` from one place to another, element by element of its shape. */
static void add_copy(struct pass *pass, struct value *value, struct place from, struct place to, bool accumulate) {
  struct graph *graph = pass->program->graph;
  struct node *part = node_new(graph, op_kind_find("copy"), &value, 1, (struct location){0});
  part->region = pass->region;
  struct value *copy = node_output(graph, part, value->shape, value->dtype);
  copy->name = value->name;
  struct step *step = new_step(pass, fuse_alone(graph, part));
  step->inputs[0] = from;
  step->outputs[0] = to;
  step->accumulate[0] = accumulate;
}

static struct place dense_copy(struct pass *pass, struct value *value, struct place from) {
  const char *name = arena_printf(pass->arena, "%s_dense_%d", value->name, pass->function->storages.count);
  struct storage *storage =
      new_storage(pass, STORAGE_SCRATCH, name, value->dtype, shape_count(value->shape), 1);
  struct place to = dense_place(storage, 0, value->shape);
  add_copy(pass, value, from, to, false);
  return to;
}

static bool same_place(const struct place *a, const struct place *b, struct shape shape) {
  if (a->storage != b->storage || a->offset != b->offset) return false;
  for (int i = 0; i < shape.rank; i++)
    if (shape.dim[i] > 1 && a->strides[i] != b->strides[i]) return false;
  return true;
}

static void lower_view(struct pass *pass, const struct node *node) {
  struct value *input = node->inputs[0], *output = node->outputs[0];
  struct place from = *place_of(pass->program, input), wanted = *place_of(pass->program, output);
  struct place seen = {.storage = from.storage};
  int64_t offset = 0;
  bool sayable = node->kind->view(node, from.strides, &offset, seen.strides);
  seen.offset = from.offset + offset;
  if (wanted.storage == NULL && sayable) {
    *place_of(pass->program, output) = seen;
  } else if (wanted.storage == NULL || !sayable) {
    if (wanted.storage == NULL) wanted = fresh_place(pass, output);
    struct place under = {.storage = wanted.storage, .offset = wanted.offset};
    node->kind->unview(node, wanted.strides, under.strides);
    if (!same_place(&under, &from, input->shape)) add_copy(pass, input, from, under, false);
    *place_of(pass->program, output) = wanted;
  } else if (!same_place(&seen, &wanted, output->shape)) {
    add_copy(pass, output, seen, wanted, false);
  }
}

static void lower_parts(struct pass *pass, const struct node *node) {
  struct place whole = *place_of(pass->program, node->outputs[0]);
  for (int i = 0; i < node->n_inputs; i++) {
    struct place part = {.storage = whole.storage}, from = *place_of(pass->program, node->inputs[i]);
    node->kind->part(node, i, whole.strides, &part.offset, part.strides);
    part.offset += whole.offset;
    if (!same_place(&part, &from, node->inputs[i]->shape)) add_copy(pass, node->inputs[i], from, part, false);
  }
}

static struct place input_place(struct pass *pass, const struct node *node, int index) {
  struct value *value = node->inputs[index];
  struct place place = *place_of(pass->program, value);
  bool accepted = node->kind->class == OP_ELEMENTWISE || place_is_dense(&place, value->shape) ||
                  (node->kind->accepts != NULL && node->kind->accepts(node, false, index, place.strides));
  return accepted ? place : dense_copy(pass, value, place);
}

static void lower_kernel(struct pass *pass, struct node *node) {
  struct place *inputs = arena_alloc(pass->arena, ((size_t)node->n_inputs + 1) * sizeof *inputs);
  for (int i = 0; i < node->n_inputs; i++) inputs[i] = input_place(pass, node, i);
  struct step *step = new_step(pass, node);
  step->inputs = inputs;
  for (int i = 0; i < node->n_outputs; i++) {
    const struct value *output = node->outputs[i];
    if (place_of(pass->program, output)->storage == NULL) {
      struct place fresh = fresh_place(pass, output);
      *place_of(pass->program, output) = fresh;
    }
    step->outputs[i] = *place_of(pass->program, output);
    step->accumulate[i] = output->id < pass->n_values && pass->accumulate[output->id];
  }
}

static struct function *function_of(const struct program *program, const struct region *region) {
  for (int i = 0; i < program->n_functions; i++)
    if (program->functions[i]->region == region) return program->functions[i];
  return NULL;
}

/* The row in which an input is carried, made by direct_carries. */
static struct storage *carried_row(const struct pass *pass, const struct node *node, int input) {
  for (int i = 0; i < pass->function->storages.count; i++) {
    struct storage *storage = pass->function->storages.items[i];
    if (storage->carrier == node && storage->carried_input == input) return storage;
  }
  return NULL;
}

static void lower_call_input(struct pass *pass, struct node *node, int index, struct place *input) {
  const struct call *call = node->call;
  struct value *value = node->inputs[index];
  *input = *place_of(pass->program, value);
  if (call->count > 1 && call->carry[index] >= 0) {
    struct storage *row = carried_row(pass, node, index);
    struct place first = dense_place(row, first_copy(call, row->copies) * row->count, value->shape);
    if (!same_place(input, &first, value->shape)) add_copy(pass, value, *input, first, false);
    *input = first;
  } else if (!place_is_dense(input, value->shape)) {
    *input = dense_copy(pass, value, *input);
  }
}

/* The final copy of a carried result, or memory of its own; and a copy of it where it was wanted elsewhere. */
static struct place call_output(struct pass *pass, struct node *node, int index) {
  const struct call *call = node->call;
  struct value *value = node->outputs[index];
  for (int i = 0; i < call->callee->inputs.count && call->count > 1; i++) {
    if (call->carry[i] != index) continue;
    struct storage *row = carried_row(pass, node, i);
    return dense_place(row, final_copy(call, row->copies) * row->count, value->shape);
  }
  struct place wanted = *place_of(pass->program, value);
  return wanted.storage != NULL ? wanted : fresh_place(pass, value);
}

static void lower_call(struct pass *pass, struct node *node) {
  struct function *callee = function_of(pass->program, node->call->callee);
  int n_results = node->call->callee->results.count;
  struct place *inputs = arena_alloc(pass->arena, ((size_t)node->n_inputs + 1) * sizeof *inputs);
  for (int i = 0; i < node->n_inputs; i++) lower_call_input(pass, node, i, &inputs[i]);
  int at = (int)(new_step(pass, node) - pass->function->steps);
  pass->function->steps[at].inputs = inputs;
  pass->function->steps[at].callee = callee;
  pass->function->steps[at].call_number = call_number(node);
  for (int i = 0; i < n_results; i++) {
    struct place made = call_output(pass, node, i);
    struct place *wanted = place_of(pass->program, node->outputs[i]);
    pass->function->steps[at].outputs[i] = made;
    if (wanted->storage != NULL && wanted->storage != made.storage)
      add_copy(pass, node->outputs[i], made, *wanted, false);
    else *wanted = made;
  }
  pass->function->random |= callee->random;
}

static struct storage *storage_at(const struct pass *pass, enum storage_kind kind, int nth) {
  for (int i = 0; i < pass->function->storages.count; i++)
    if (pass->function->storages.items[i]->kind == kind && nth-- == 0) return pass->function->storages.items[i];
  return NULL;
}

/* A value that could not be written where it was wanted is copied there. */
static void deliver(struct pass *pass, struct value *value, struct storage *storage, bool accumulate) {
  struct place from = *place_of(pass->program, value);
  if (from.storage != storage) add_copy(pass, value, from, dense_place(storage, 0, value->shape), accumulate);
}

static bool makes(const struct node *node, const struct value *value) {
  for (int i = 0; i < node->n_outputs; i++)
    if (node->outputs[i] == value) return true;
  return false;
}

/* Gradients are delivered as soon as they are made: the first contribution to a parameter writes, the others add. */
static void deliver_gradients(struct pass *pass, const struct node *node) {
  for (int i = 0; i < pass->region->gradients.count; i++) {
    const struct parameter_gradient *gradient = &pass->region->gradients.items[i];
    if (node != NULL ? makes(node, gradient->value) : !is_local(pass, gradient->value))
      deliver(pass, gradient->value, storage_at(pass, STORAGE_GRADIENT, i), gradient->accumulate);
  }
}

static void lower_all(struct pass *pass) {
  struct region *region = pass->region;
  deliver_gradients(pass, NULL);
  for (int i = 0; i < region->nodes.count; i++) {
    struct node *node = region->nodes.items[i];
    pass->function->random |= node->kind->random;
    if (node->kind->part != NULL) lower_parts(pass, node);
    else if (node->kind->class == OP_VIEW) lower_view(pass, node);
    else if (node->call != NULL) lower_call(pass, node);
    else lower_kernel(pass, node);
    deliver_gradients(pass, node);
  }
  for (int i = 0; i < region->results.count; i++)
    deliver(pass, region->results.items[i], storage_at(pass, STORAGE_RESULT, i), false);
}

/* ---- Functions ---- */

static void place_operands(struct pass *pass) {
  struct region *region = pass->region;
  for (int i = 0; i < region->inputs.count; i++) {
    const struct value *value = region->inputs.items[i];
    *place_of(pass->program, value) = dense_place(operand_storage(pass, STORAGE_INPUT, value, i), 0, value->shape);
  }
  for (int i = 0; i < region->parameters.count; i++) {
    const struct value *value = region->parameters.items[i].value;
    *place_of(pass->program, value) = dense_place(operand_storage(pass, STORAGE_WEIGHT, value, i), 0, value->shape);
  }
}

static struct function *new_function(struct program *program, struct region *region) {
  struct function *function = arena_alloc(program->arena, sizeof *function);
  function->region = region;
  if (region->forward != NULL) {
    function->forward = function_of(program, region->forward);
    function->forward->backward = function;
  }
  const char *base = region->forward != NULL ? region->forward->name : region->name;
  function->name =
      arena_printf(program->arena, "%s_%s", base, region->forward != NULL ? "backward" : "forward");
  program->functions = arena_grow(program->arena, program->functions, program->n_functions,
                                  &program->functions_capacity, sizeof *program->functions);
  program->functions[program->n_functions++] = function;
  return function;
}

/* What backward regions use of their forward regions. */
static void mark_saved(struct pass *pass) {
  const struct graph *graph = pass->program->graph;
  for (int r = 0; r < graph->n_regions; r++) {
    const struct region *region = graph->regions[r];
    for (int i = 0; i < region->nodes.count; i++) {
      const struct node *node = region->nodes.items[i];
      for (int k = 0; k < node->n_inputs; k++)
        if (node->inputs[k]->region == region->forward && node->inputs[k]->kind == VALUE_RESULT)
          pass->saved[node->inputs[k]->id] = true;
    }
  }
}

void layout(struct program *program) {
  struct graph *graph = program->graph;
  struct pass pass = {.program = program, .arena = program->arena, .n_values = graph->next_value};
  pass.uses = count_uses(program->arena, graph);
  pass.saved = arena_alloc(program->arena, ((size_t)pass.n_values + 1) * sizeof(bool));
  pass.accumulate = arena_alloc(program->arena, ((size_t)pass.n_values + 1) * sizeof(bool));
  mark_saved(&pass);
  for (int r = 0; r < graph->n_regions; r++) {
    pass.region = graph->regions[r];
    pass.function = new_function(program, pass.region);
    place_operands(&pass);
    direct_all(&pass);
    lower_all(&pass);
  }
}
