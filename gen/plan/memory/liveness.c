#include "gen/plan/memory/liveness.h"

#include "gen/ir/op.h"
#include "gen/plan/graph/weight_visitor.h"
#include "gen/program/storage.h"
#include "gen/program/weights.h"

/* ---- Buffers ---- */

bool runs_once(const struct program *program, const struct function *function) {
  const struct function *caller = NULL;
  int calls = 0;
  if (function == program->entry.forward) return true;
  for (int f = 0; f < program->functions.count; f++) {
    const struct function *other = program->functions.items[f];
    for (int s = 0; s < other->n_steps; s++) {
      if (other->steps[s].callee != function) continue;
      calls += other->steps[s].node->call->count;
      caller = other;
    }
  }
  return calls == 1 && runs_once(program, caller);
}

static void add_buffers(const struct program *program, const struct function *function, struct liveness *liveness) {
  for (int i = 0; i < function->storages.count; i++) {
    struct storage *storage = function->storages.items[i];
    if (storage->kind != STORAGE_SAVED) continue;
    if (storage->frame != NULL && runs_once(program, storage->frame)) {
      add_buffers(program, storage->frame, liveness);
      continue;
    }
    struct live_buffer buffer = {storage, arena_alloc(program->arena, (size_t)storage->copies * sizeof *buffer.last)};
    for (int k = 0; k < storage->copies; k++) buffer.last[k] = -1;
    ARENA_PUSH(program->arena, liveness->buffers, buffer);
  }
}

static struct live_buffer *buffer_of(const struct liveness *liveness, const struct storage *storage) {
  for (int i = 0; i < liveness->buffers.count; i++)
    if (liveness->buffers.items[i].storage == storage) return &liveness->buffers.items[i];
  return NULL;
}

/* ---- Runs of functions ---- */

struct simulation {
  struct program *program;
  struct liveness *liveness;
  int64_t now;
};

/* Copies of a live buffer, or the gradient of a weight, in which something is; both NULL: it is elsewhere. */
struct alias_target {
  struct live_buffer *buffer;
  int first, last;
  int64_t *written; /* when that gradient is written for the first time */
};

struct run {
  const struct function *function;
  const char *const *prefixes; /* by scope */
  struct alias_target *inputs, *results;
  struct alias_target frame; /* what its forward has saved, as a whole; without a buffer: each storage may be its own */
};

static struct alias_target gradient_target(const struct simulation *simulation, const struct run *run,
                                           const struct storage *storage) {
  const struct parameter *parameter = &run->function->region->forward->parameters.items[storage->index];
  const char *path = weight_path(simulation->program->arena, run->prefixes[parameter->scope], parameter->path);
  int64_t weight = weight_named(simulation->program->weights, path) - simulation->program->weights->items;
  return (struct alias_target){.written = &simulation->liveness->written[weight]};
}

static struct alias_target target_of(const struct simulation *simulation, const struct run *run,
                                     const struct storage *storage, int first, int last) {
  switch (storage->kind) {
  case STORAGE_INPUT:
    return run->inputs[storage->index];
  case STORAGE_RESULT:
    return run->results[storage->index];
  case STORAGE_SAVED:
    if (run->frame.buffer != NULL) return run->frame;
    return (struct alias_target){.buffer = buffer_of(simulation->liveness, storage), .first = first, .last = last};
  case STORAGE_GRADIENT:
    return gradient_target(simulation, run, storage);
  default:
    return (struct alias_target){0};
  }
}

/* Where the elements of a value are. */
static struct alias_target target_at(const struct simulation *simulation, const struct run *run,
                                     const struct view *view, struct shape shape) {
  if (view->storage == NULL) return (struct alias_target){0};
  const struct storage *root = storage_root(view->storage);
  int64_t end = view->offset;
  for (int d = 0; d < shape.rank; d++) end += (shape.dim[d] - 1) * view->strides[d];
  return target_of(simulation, run, root, (int)(view->offset / root->count), (int)(end / root->count));
}

static void touch(const struct simulation *simulation, struct alias_target target) {
  for (int k = target.first; target.buffer != NULL && k <= target.last; k++) target.buffer->last[k] = simulation->now;
}

static void write_to(const struct simulation *simulation, struct alias_target target) {
  touch(simulation, target);
  if (target.written != NULL && *target.written < 0) *target.written = simulation->now;
}

static void run_kernel(struct simulation *simulation, const struct run *run, const struct step *step) {
  simulation->now++;
  for (int i = 0; i < step->node->n_inputs; i++)
    touch(simulation, target_at(simulation, run, &step->inputs[i], step->node->inputs[i]->shape));
  for (int i = 0; i < step->node->n_outputs; i++)
    write_to(simulation, target_at(simulation, run, &step->outputs[i], step->node->outputs[i]->shape));
}

/* ---- Calls ---- */

static struct alias_target row_target(const struct simulation *simulation, const struct run *run,
                                      const struct view *view, int copy) {
  return target_of(simulation, run, storage_root(view->storage), copy, copy);
}

static struct alias_target input_target(const struct simulation *simulation, const struct run *run,
                                        const struct step *step, int input, int iteration) {
  const struct call *call = step->node->call;
  const struct view *view = &step->inputs[input];
  if (call->count > 1 && call->carry[input] >= 0)
    return row_target(simulation, run, view, iteration + (call->forward != NULL ? 1 : 0));
  if (call->stacked != NULL && call->stacked[input])
    return row_target(simulation, run, view, stacked_copy(view, iteration));
  return target_at(simulation, run, view, call->callee->inputs.items[input]->shape);
}

static struct alias_target result_target(const struct simulation *simulation, const struct run *run,
                                         const struct step *step, int result, int iteration) {
  const struct call *call = step->node->call;
  const struct view *view = &step->outputs[result];
  if (call->count > 1) return row_target(simulation, run, view, iteration + (call->forward != NULL ? 0 : 1));
  return target_at(simulation, run, view, call->callee->results.items[result]->shape);
}

static struct alias_target frame_target(const struct simulation *simulation, const struct run *run,
                                        const struct step *step, int iteration) {
  const struct node *forward = step->node->call->forward != NULL ? step->node->call->forward : step->node;
  const struct storage *frame = frame_of(run->function, forward);
  return frame == NULL ? (struct alias_target){0} : target_of(simulation, run, frame, iteration, iteration);
}

static void run_function(struct simulation *simulation, const struct run *run);

static void run_iteration(struct simulation *simulation, const struct run *run, const struct step *step,
                          int iteration) {
  struct arena *arena = simulation->program->arena;
  const struct call *call = step->node->call;
  struct run inner = {.function = step->callee, .frame = frame_target(simulation, run, step, iteration)};
  inner.prefixes = weight_scopes(arena, call, iteration, run->prefixes);
  inner.inputs = arena_alloc(arena, ((size_t)call->callee->inputs.count + 1) * sizeof *inner.inputs);
  for (int i = 0; i < call->callee->inputs.count; i++)
    if (step->callee->uses_inputs[i]) inner.inputs[i] = input_target(simulation, run, step, i, iteration);
  inner.results = arena_alloc(arena, ((size_t)call->callee->results.count + 1) * sizeof *inner.results);
  for (int i = 0; i < call->callee->results.count; i++)
    inner.results[i] = result_target(simulation, run, step, i, iteration);
  run_function(simulation, &inner);
}

static void run_function(struct simulation *simulation, const struct run *run) {
  for (int s = 0; s < run->function->n_steps; s++) {
    const struct step *step = &run->function->steps[s];
    if (step->callee == NULL) {
      run_kernel(simulation, run, step);
      continue;
    }
    const struct call *call = step->node->call;
    for (int k = 0; k < call->count; k++)
      run_iteration(simulation, run, step, call->forward != NULL ? call->count - 1 - k : k);
  }
}

void find_liveness(struct program *program, struct liveness *liveness) {
  static const char *const root[] = {""};
  struct arena *arena = program->arena;
  const struct region *region = program->entry.backward->region;
  struct simulation simulation = {program, liveness, 0};
  *liveness = (struct liveness){0};
  add_buffers(program, program->entry.forward, liveness);
  liveness->written = arena_alloc(arena, ((size_t)program->weights->count + 1) * sizeof *liveness->written);
  for (int i = 0; i < program->weights->count; i++) liveness->written[i] = program->weights->items[i].zero ? 0 : -1;
  struct run run = {.function = program->entry.backward, .prefixes = root};
  run.inputs = arena_alloc(arena, ((size_t)region->inputs.count + 1) * sizeof *run.inputs);
  run.results = arena_alloc(arena, ((size_t)region->results.count + 1) * sizeof *run.results);
  run_function(&simulation, &run);
}
