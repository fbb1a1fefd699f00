#include "gen/plan/memory/allocate.h"

#include <stdlib.h>
#include <string.h>

#include "gen/ir/names.h"
#include "gen/ir/op.h"
#include "gen/plan/memory/layout.h"
#include "gen/plan/memory/storage_names.h"
#include "gen/program/storage.h"

/* ---- Frames ---- */

/* The storages of one kind of a function, or those of them that are frames. */
struct named_storages {
  const struct function *function;
  enum storage_kind kind;
  bool frames;
};

static bool is_storage(const void *context, const char *name) {
  const struct named_storages *among = context;
  for (int i = 0; i < among->function->storages.count; i++) {
    const struct storage *storage = among->function->storages.items[i];
    bool meant = storage->kind == among->kind && (storage->frame != NULL || !among->frames);
    if (meant && strcmp(storage->name, name) == 0) return true;
  }
  return false;
}

/* The callee's name, with a number for further frames of it; where a value has that, another name than values have. */
static const char *frame_name(struct program *program, const struct function *function, enum storage_kind kind,
                              const char *callee) {
  const struct named_storages all = {function, kind, false}, frames = {function, kind, true};
  const char *name = free_name(program->arena, callee, is_storage, &frames);
  if (!is_storage(&all, name)) return name;
  return free_name(program->arena, arena_printf(program->arena, "%s_saved", callee), is_storage, &all);
}

/* Whether a call of the function differentiates this one. */
static bool goes_back(const struct function *function, const struct node *call) {
  for (int s = 0; s < function->n_steps; s++)
    if (function->steps[s].callee != NULL && function->steps[s].node->call->forward == call) return true;
  return function->deferred != NULL && goes_back(function->deferred, call);
}

static void make_frames(struct program *program, struct function *function) {
  for (int s = 0; s < function->n_steps; s++) {
    const struct step *step = &function->steps[s];
    if (step->callee == NULL || step->callee->saved_bytes == 0 || step->node->call->forward != NULL) continue;
    bool saved = function->backward != NULL && goes_back(function->backward, step->node);
    enum storage_kind kind = saved ? STORAGE_SAVED : STORAGE_SCRATCH;
    struct storage *frame = arena_alloc(program->arena, sizeof *frame);
    *frame = (struct storage){.kind = kind,
                              .name = frame_name(program, function, kind, step->callee->region->name),
                              .dtype = DTYPE_FLOAT32,
                              .count = step->callee->saved_bytes / dtype_size(DTYPE_FLOAT32),
                              .copies = step->node->call->count,
                              .function = function,
                              .first = -1,
                              .last = -1,
                              .slot = -1,
                              .frame = step->callee,
                              .call = step->node};
    ARENA_PUSH(program->arena, function->storages, frame);
  }
}

/* ---- Lifetimes ---- */

/* First and last uses are those of the current function; saved storages are used by the forward and by the backward
 * function, one after the other, so each function starts from scratch. */
static void touch(struct storage *storage, int step) {
  if (storage == NULL) return; /* a deferred call does not read it */
  if (storage->first < 0) storage->first = step;
  storage->last = step;
}

static void touch_operands(const struct step *step, int at) {
  for (int i = 0; i < step->node->n_inputs; i++) touch(step->inputs[i].storage, at);
  for (int i = 0; i < step->node->n_outputs; i++) touch(step->outputs[i].storage, at);
}

static void forget_operands(const struct function *function) {
  for (int s = 0; s < function->n_steps; s++) {
    const struct step *step = &function->steps[s];
    for (int i = 0; i < step->node->n_inputs; i++)
      if (step->inputs[i].storage != NULL) step->inputs[i].storage->first = -1;
    for (int i = 0; i < step->node->n_outputs; i++)
      if (step->outputs[i].storage != NULL) step->outputs[i].storage->first = -1;
  }
}

/* Deferred statements come after all of a backward function. */
static void find_lifetimes(struct function *function) {
  const struct function *deferred = function->deferred;
  forget_operands(function);
  if (deferred != NULL) forget_operands(deferred);
  for (int s = 0; s < function->n_steps; s++) {
    const struct step *step = &function->steps[s];
    touch_operands(step, s);
    if (step->callee == NULL) continue;
    const struct node *forward = step->node->call->forward;
    struct storage *frame = own_frame(function, forward != NULL ? forward : step->node);
    if (frame != NULL) touch(frame, s);
  }
  for (int s = 0; deferred != NULL && s < deferred->n_steps; s++)
    touch_operands(&deferred->steps[s], function->n_steps);
}

/* ---- In place ---- */

static bool is_whole(const struct view *view, const struct value *value) {
  return view->offset == 0 && view->storage->copies == 1 && view_is_dense(view, value->shape) &&
         view->storage->count == shape_count(value->shape);
}

/* Whether the memory of input `i` may be lost after step s of the function. */
static bool dies(const struct function *function, int s, int i) {
  const struct step *step = &function->steps[s];
  struct storage *root = storage_root(step->inputs[i].storage);
  bool scratch = root->kind == STORAGE_SCRATCH && root->function == function;
  bool saved = root->kind == STORAGE_SAVED && function->forward != NULL && root->function == function->forward;
  if ((!scratch && !saved) || root->last != s) return false;
  for (int k = 0; k < step->node->n_inputs; k++)
    if (k != i && storage_root(step->inputs[k].storage) == root) return false;
  return true;
}

static bool kind_allows(const struct node *node, int output, int input) {
  if (node->kind->class == OP_ELEMENTWISE)
    return shape_equal(node->inputs[input]->shape, node->outputs[output]->shape) &&
           node->inputs[input]->dtype == node->outputs[output]->dtype;
  return node->kind->memory.in_place[op_described(node->kind, output)] == input + 1 &&
         node->inputs[input]->dtype == node->outputs[output]->dtype;
}

/* An output in memory of its own takes over the memory of an input that dies. */
static void take_input(struct function *function, int s) {
  const struct step *step = &function->steps[s];
  for (int o = 0; o < step->node->n_outputs; o++) {
    struct storage *made = step->outputs[o].storage;
    if (made->kind != STORAGE_SCRATCH || made->first != s || made->shared != NULL || step->accumulate[o]) continue;
    if (!is_whole(&step->outputs[o], step->node->outputs[o])) continue;
    for (int i = 0; i < step->node->n_inputs; i++) {
      if (!kind_allows(step->node, o, i) || !dies(function, s, i)) continue;
      if (!is_whole(&step->inputs[i], step->node->inputs[i])) continue;
      struct storage *root = storage_root(step->inputs[i].storage);
      made->shared = root;
      root->last = made->last;
      break;
    }
  }
}

/* The other way: an output whose memory is fixed (saved, or the caller's) gives its memory to a scratch input that dies
 * with it, so that a matmul and what is added to it are one buffer. */
static void give_output(struct function *function, int s) {
  const struct step *step = &function->steps[s];
  for (int o = 0; o < step->node->n_outputs; o++) {
    struct storage *made = step->outputs[o].storage;
    bool fixed = made->kind == STORAGE_RESULT || (made->kind == STORAGE_SAVED && made->function == function);
    if (!fixed || made->first != s || step->accumulate[o]) continue;
    if (!is_whole(&step->outputs[o], step->node->outputs[o])) continue;
    for (int i = 0; i < step->node->n_inputs; i++) {
      if (!kind_allows(step->node, o, i) || !dies(function, s, i)) continue;
      if (!is_whole(&step->inputs[i], step->node->inputs[i])) continue;
      struct storage *root = storage_root(step->inputs[i].storage);
      if (root->kind != STORAGE_SCRATCH) continue;
      root->shared = made;
      made->first = root->first;
      break;
    }
  }
}

/* ---- Slots ---- */

static int compare_sizes(const void *left, const void *right) {
  const struct storage *a = *(struct storage *const *)left, *b = *(struct storage *const *)right;
  int64_t p = storage_bytes(a), q = storage_bytes(b);
  if (p != q) return p > q ? -1 : 1;
  return a->first != b->first ? (a->first < b->first ? -1 : 1) : strcmp(a->name, b->name);
}

static bool callee_runs_within(const struct function *function, const struct function *callee, int first, int last) {
  for (int s = first; s <= last; s++)
    if (function->steps[s].callee == callee) return true;
  return false;
}

static bool fits(const struct function *function, const struct slot *slot, int first, int last) {
  for (int i = 0; i < slot->storages.count; i++)
    if (slot->storages.items[i]->first <= last && first <= slot->storages.items[i]->last) return false;
  for (int i = 0; i < slot->n_callees; i++)
    if (callee_runs_within(function, slot->callees[i], first, last)) return false;
  return true;
}

static struct slot *new_slot(struct program *program, struct function *function) {
  function->slots = arena_grow(program->arena, function->slots, function->n_slots, &function->slots_capacity,
                               sizeof *function->slots);
  struct slot *slot = &function->slots[function->n_slots++];
  memset(slot, 0, sizeof *slot);
  return slot;
}

static void put_storage(struct program *program, struct function *function, struct storage *storage) {
  struct slot *slot = NULL;
  for (int i = 0; i < function->n_slots && slot == NULL; i++)
    if (fits(function, &function->slots[i], storage->first, storage->last)) slot = &function->slots[i];
  if (slot == NULL) slot = new_slot(program, function);
  storage->slot = (int)(slot - function->slots);
  ARENA_PUSH(program->arena, slot->storages, storage);
  if (storage_bytes(storage) > slot->bytes) slot->bytes = storage_bytes(storage);
}

static bool callee_fits(const struct function *function, const struct slot *slot, const struct function *callee) {
  for (int s = 0; s < function->n_steps; s++)
    if (function->steps[s].callee == callee && !fits(function, slot, s, s)) return false;
  return true;
}

static void put_callee(struct program *program, struct function *function, struct function *callee) {
  if (callee->scratch_bytes == 0) return;
  for (int i = 0; i < function->n_slots; i++)
    for (int k = 0; k < function->slots[i].n_callees; k++)
      if (function->slots[i].callees[k] == callee) return;
  struct slot *slot = NULL;
  for (int i = 0; i < function->n_slots && slot == NULL; i++)
    if (callee_fits(function, &function->slots[i], callee)) slot = &function->slots[i];
  if (slot == NULL) slot = new_slot(program, function);
  slot->callees = arena_grow(program->arena, slot->callees, slot->n_callees, &slot->callees_capacity, sizeof callee);
  slot->callees[slot->n_callees++] = callee;
  if (callee->scratch_bytes > slot->bytes) slot->bytes = callee->scratch_bytes;
}

static void fill_slots(struct program *program, struct function *function) {
  struct storage **sorted = arena_alloc(program->arena, ((size_t)function->storages.count + 1) * sizeof *sorted);
  int n = 0;
  for (int i = 0; i < function->storages.count; i++) {
    struct storage *storage = function->storages.items[i];
    if (storage->kind == STORAGE_SCRATCH && storage->shared == NULL && storage->first >= 0) sorted[n++] = storage;
  }
  qsort(sorted, (size_t)n, sizeof *sorted, compare_sizes);
  for (int s = 0; s < function->n_steps; s++)
    if (function->steps[s].callee != NULL) put_callee(program, function, function->steps[s].callee);
  for (int i = 0; i < n; i++) put_storage(program, function, sorted[i]);
  for (int i = 0; i < function->n_slots; i++) function->scratch_bytes += arena_aligned(function->slots[i].bytes);
}

void allocate_memory(struct program *program) {
  for (int f = 0; f < program->functions.count; f++) {
    struct function *function = program->functions.items[f];
    make_frames(program, function);
    find_lifetimes(function);
    for (int s = 0; s < function->n_steps; s++) {
      if (function->steps[s].callee != NULL) continue;
      take_input(function, s);
      give_output(function, s);
    }
    fill_slots(program, function);
    for (int i = 0; i < function->storages.count; i++)
      if (function->storages.items[i]->kind == STORAGE_SAVED)
        function->saved_bytes += arena_aligned(storage_bytes(function->storages.items[i]));
  }
  name_storages(program); /* after what sorts by names */
}
