#include "gen/plan/report/occupancy.h"

#include "gen/ir/op.h"
#include "gen/plan/memory/liveness.h"
#include "gen/program/optimizers.h"
#include "gen/program/sharding.h"
#include "gen/program/storage.h"

enum { MOST_SCRATCH = 4000 };

const char *const occupied_names[OCCUPIED_KINDS] = {"weights", "gradients",   "optimizer", "averages",
                                                    "batch",   "activations", "scratch",   "checkpoint"};

/* A copy of a saved storage. */
struct kept {
  const struct storage *storage;
  int copy;
  int64_t at, first, last; /* first: 0 until the forward has written it */
};

struct maker {
  struct program *program;
  struct occupancy *occupancy;
  struct liveness liveness;
  struct {
    struct kept *items;
    int count, capacity;
  } kept;
  int n_scratch;
  int depth; /* of calls, below which a function's scratch is one occupant */
};

static void add(struct maker *maker, struct occupant occupant) {
  ARENA_PUSH(maker->program->arena, maker->occupancy->occupants, occupant);
}

static int64_t end_of_step(const struct occupancy *occupancy) {
  return occupancy->forward + occupancy->backward + 1;
}

static void add_whole(struct maker *maker, enum occupied kind) {
  const int64_t at = maker->occupancy->regions[kind].at, bytes = maker->occupancy->regions[kind].bytes;
  if (bytes > 0) add(maker, (struct occupant){occupied_names[kind], kind, at, bytes, 1, end_of_step(maker->occupancy)});
}

/* ---- Statements ---- */

static int64_t statements_of(const struct function *function);

static int64_t statements_in(const struct step *step) {
  return step->callee == NULL ? 1 : step->node->call->count * statements_of(step->callee);
}

static int64_t statements_of(const struct function *function) {
  int64_t count = 0;
  for (int s = 0; s < function->n_steps; s++) count += statements_in(&function->steps[s]);
  return count;
}

/* ---- What the forward saves ---- */

static void keep(struct maker *maker, const struct storage *storage, int64_t at) {
  const int64_t bytes = storage_bytes(storage) / storage->copies;
  for (int k = 0; k < storage->copies; k++) {
    const struct kept kept = {storage, k, at + k * bytes, 0, 0};
    ARENA_PUSH(maker->program->arena, maker->kept, kept);
  }
}

/* In the order of the members of the C type. Frames of functions that run once are looked into. */
static void keep_saved(struct maker *maker, const struct function *function, int64_t at) {
  for (int i = 0; i < function->storages.count; i++) {
    const struct storage *storage = function->storages.items[i];
    if (storage->kind != STORAGE_SAVED || storage->alias != NULL) continue;
    if (storage->frame != NULL && runs_once(maker->program, storage->frame))
      keep_saved(maker, storage->frame, at);
    else
      keep(maker, storage, at);
    at += arena_aligned(storage_bytes(storage));
  }
}

static void write_copy(const struct maker *maker, const struct storage *storage, int copy, int64_t now) {
  for (int i = 0; i < maker->kept.count; i++) {
    struct kept *kept = &maker->kept.items[i];
    if (kept->storage == storage && kept->copy == copy && kept->first == 0) kept->first = now;
  }
}

/* A function that runs once, and the call of it. */
struct single_run {
  const struct function *function;
  const struct step *call;
  const struct single_run *caller; /* NULL: it is the entry */
};

static void write_view(const struct maker *maker, const struct single_run *run, const struct view *view, int further,
                       int64_t now) {
  if (view->storage == NULL) return;
  const struct storage *root = storage_root(view->storage);
  if (root->kind == STORAGE_SAVED)
    write_copy(maker, root, (int)(view->offset / root->count) + further, now);
  else if (root->kind == STORAGE_RESULT && run->caller != NULL)
    write_view(maker, run->caller, &run->call->outputs[root->index], 0, now);
}

static int64_t run_forward(const struct maker *maker, const struct single_run *run, int64_t now);

/* What functions give that run more than once is written at some statement of them: it counts from their first one. */
static int64_t run_call(const struct maker *maker, const struct single_run *run, const struct step *step, int64_t now) {
  const int count = step->node->call->count;
  const struct storage *frame = own_frame(run->function, step->node);
  if (runs_once(maker->program, step->callee))
    return run_forward(maker, &(struct single_run){step->callee, step, run}, now);
  for (int k = 0; k < count; k++) {
    for (int o = 0; o < step->node->n_outputs; o++)
      write_view(maker, run, &step->outputs[o], count > 1 ? k + 1 : 0, now + 1);
    if (frame != NULL) write_copy(maker, frame, k, now + 1);
    now += statements_of(step->callee);
  }
  return now;
}

static int64_t run_forward(const struct maker *maker, const struct single_run *run, int64_t now) {
  for (int s = 0; s < run->function->n_steps; s++) {
    const struct step *step = &run->function->steps[s];
    if (step->callee != NULL) {
      now = run_call(maker, run, step, now);
      continue;
    }
    now++;
    for (int o = 0; o < step->node->n_outputs; o++) write_view(maker, run, &step->outputs[o], 0, now);
  }
  return now;
}

static int64_t last_use(const struct maker *maker, const struct kept *kept) {
  const int64_t forward = maker->occupancy->forward;
  for (int i = 0; i < maker->liveness.buffers.count; i++) {
    const struct live_buffer *buffer = &maker->liveness.buffers.items[i];
    if (buffer->storage == kept->storage && buffer->last[kept->copy] > 0) return forward + buffer->last[kept->copy];
  }
  return forward;
}

static void add_kept(struct maker *maker) {
  struct program *program = maker->program;
  const int64_t gradients = maker->occupancy->regions[OCCUPIED_GRADIENTS].at;
  keep_saved(maker, program->entry.forward, maker->occupancy->regions[OCCUPIED_ACTIVATIONS].at);
  for (int i = 0; i < program->aliases.count; i++)
    keep(maker, program->aliases.items[i].storage, gradients + program->aliases.items[i].at);
  run_forward(maker, &(struct single_run){.function = program->entry.forward}, 0);
  for (int i = 0; i < maker->kept.count; i++) {
    const struct kept *kept = &maker->kept.items[i];
    const struct storage *storage = kept->storage;
    const char *name =
        storage->copies > 1 ? arena_printf(program->arena, "%s[%d]", storage->name, kept->copy) : storage->name;
    add(maker, (struct occupant){name, OCCUPIED_ACTIVATIONS, kept->at, storage_bytes(storage) / storage->copies,
                                 kept->first > 0 ? kept->first : 1, last_use(maker, kept)});
  }
}

/* ---- Gradients ---- */

/* Whether memory of gradients is used again within a step: those of layers, or of parameters that are updated at once,
 * are there one after the other. */
static bool gradients_pass(const struct program *program) {
  return job_optimizer(program->job)->in_backward || shard_has_own_gradients(program) ||
         program->ranks.fsdp_units.count > 0;
}

/* From their first writing to the end of the step. Those that pass are one occupant. */
static void add_gradients(struct maker *maker) {
  const struct weight_tree *weights = maker->program->weights;
  const int64_t at = maker->occupancy->regions[OCCUPIED_GRADIENTS].at;
  if (gradients_pass(maker->program)) {
    if (maker->program->aliases.count == 0) add_whole(maker, OCCUPIED_GRADIENTS);
    return;
  }
  for (int i = 0; i < weights->count; i++) {
    const struct weight *weight = &weights->items[i];
    const int64_t bytes = shape_count(weight->parameter->shape) * dtype_size(DTYPE_FLOAT32);
    const int64_t written = maker->liveness.written[i];
    if (weight->gradient < 0 || written < 0) continue;
    if (weight->gradient + bytes > maker->occupancy->regions[OCCUPIED_GRADIENTS].bytes) continue;
    add(maker,
        (struct occupant){weight->path, OCCUPIED_GRADIENTS, at + weight->gradient, bytes,
                          maker->occupancy->forward + (written > 0 ? written : 1), end_of_step(maker->occupancy)});
  }
}

/* ---- Scratch ---- */

static void add_scratch(struct maker *maker, int64_t at, int64_t bytes, int64_t first, int64_t last) {
  maker->n_scratch++;
  add(maker, (struct occupant){"", OCCUPIED_SCRATCH, at, bytes, first, last});
}

/* Bytes from the start of a function's scratch to the slot of a callee's; -1: it has none. */
static int64_t callee_at(const struct function *function, const struct function *callee) {
  int64_t at = 0;
  for (int i = 0; i < function->n_slots; i++) {
    const struct slot *slot = &function->slots[i];
    for (int k = 0; k < slot->n_callees; k++)
      if (slot->callees[k] == callee) return at;
    at += arena_aligned(slot->bytes);
  }
  return -1;
}

/* When statement `step` of a function that begins after `now` begins: after so many statements. */
static int64_t before_step(const struct function *function, int step, int64_t now) {
  for (int s = 0; s < step; s++) now += statements_in(&function->steps[s]);
  return now;
}

static void add_slots(struct maker *maker, const struct function *function, int64_t at, int64_t now) {
  for (int i = 0; i < function->n_slots; i++) {
    const struct slot *slot = &function->slots[i];
    for (int k = 0; k < slot->storages.count; k++) {
      const struct storage *storage = slot->storages.items[k];
      if (storage->first < 0 || storage->last >= function->n_steps) continue;
      add_scratch(maker, at, storage_bytes(storage), before_step(function, storage->first, now) + 1,
                  before_step(function, storage->last + 1, now));
    }
    at += arena_aligned(slot->bytes);
  }
}

static void run_scratch(struct maker *maker, const struct function *function, int64_t at, int64_t now, int depth) {
  if (function->scratch_bytes == 0 || maker->n_scratch > MOST_SCRATCH) return;
  if (depth > maker->depth) {
    add_scratch(maker, at, function->scratch_bytes, now + 1, now + statements_of(function));
    return;
  }
  add_slots(maker, function, at, now);
  for (int s = 0; s < function->n_steps; s++) {
    const struct step *step = &function->steps[s];
    const int64_t inner = step->callee != NULL ? callee_at(function, step->callee) : -1;
    for (int k = 0; inner >= 0 && k < step->node->call->count; k++)
      run_scratch(maker, step->callee, at + inner, now + k * statements_of(step->callee), depth + 1);
    now += statements_in(step);
  }
}

/* As deep as the number of occupants allows. */
static void add_all_scratch(struct maker *maker) {
  struct occupancy *occupancy = maker->occupancy;
  const int64_t at = occupancy->regions[OCCUPIED_SCRATCH].at;
  const int before = occupancy->occupants.count;
  for (maker->depth = 8; maker->depth >= 0; maker->depth--) {
    occupancy->occupants.count = before;
    maker->n_scratch = 0;
    run_scratch(maker, maker->program->entry.forward, at, 0, 0);
    run_scratch(maker, maker->program->entry.backward, at, occupancy->forward, 0);
    if (maker->n_scratch <= MOST_SCRATCH) return;
  }
  occupancy->occupants.count = before;
}

/* ---- Regions ---- */

static void find_regions(const struct program *program, struct occupancy *occupancy) {
  const struct memory_bytes *bytes = &program->figures.bytes;
  const int64_t sizes[OCCUPIED_KINDS] = {[OCCUPIED_WEIGHTS] = bytes->weights + bytes->cache,
                                         [OCCUPIED_GRADIENTS] = bytes->gradients,
                                         [OCCUPIED_OPTIMIZER] = bytes->optimizer,
                                         [OCCUPIED_AVERAGES] = bytes->averages,
                                         [OCCUPIED_BATCH] = bytes->batch,
                                         [OCCUPIED_ACTIVATIONS] = bytes->activations,
                                         [OCCUPIED_SCRATCH] = bytes->scratch,
                                         [OCCUPIED_CHECKPOINT] = bytes->checkpoint};
  for (int i = 0; i < OCCUPIED_KINDS; i++) {
    occupancy->regions[i].at = occupancy->total;
    occupancy->regions[i].bytes = sizes[i];
    occupancy->total += sizes[i];
  }
}

struct occupancy *occupancy_of(struct program *program) {
  const bool staged = program->ranks.pipeline.stages > 0 || program->entry.deferred != NULL;
  if (program->kind != PROGRAM_TRAIN || program->entry.backward == NULL || staged) return NULL;
  struct occupancy *occupancy = arena_alloc(program->arena, sizeof *occupancy);
  struct maker maker = {.program = program, .occupancy = occupancy};
  occupancy->forward = statements_of(program->entry.forward);
  occupancy->backward = statements_of(program->entry.backward);
  find_regions(program, occupancy);
  find_liveness(program, &maker.liveness);
  static const enum occupied always[] = {OCCUPIED_WEIGHTS, OCCUPIED_OPTIMIZER, OCCUPIED_AVERAGES, OCCUPIED_BATCH,
                                         OCCUPIED_CHECKPOINT};
  for (size_t i = 0; i < sizeof always / sizeof *always; i++) add_whole(&maker, always[i]);
  add_kept(&maker);
  add_gradients(&maker);
  add_all_scratch(&maker);
  return occupancy;
}
