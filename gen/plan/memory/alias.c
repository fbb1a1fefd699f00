#include "gen/plan/memory/alias.h"

#include <stdlib.h>
#include <string.h>

#include "gen/ir/names.h"
#include "gen/plan/graph/segments.h"
#include "gen/plan/memory/liveness.h"
#include "gen/program/optimizers.h"
#include "gen/program/storage.h"
#include "gen/program/streams.h"
#include "gen/program/target.h"
#include "gen/program/weights.h"

enum { SMALLEST_FRACTION = 64 }; /* the smallest alias, as a fraction of what is saved: one in so many bytes */

/* ---- Free memory ---- */

/* Bytes that can be had until a statement; 0: never. */
struct stretch {
  int64_t from, to, until;
};

struct memory {
  struct arena *arena;
  struct stretch *items; /* in order, without gaps */
  int count, capacity;
  int64_t bytes;
};

static void push(struct memory *memory, int64_t to, int64_t until) {
  int64_t from = memory->count > 0 ? memory->items[memory->count - 1].to : 0;
  if (to > from) ARENA_PUSH(memory->arena, *memory, ((struct stretch){from, to, until}));
}

static int compare_gradients(const void *left, const void *right) {
  const struct weight *a = *(const struct weight *const *)left, *b = *(const struct weight *const *)right;
  return a->gradient < b->gradient ? -1 : a->gradient > b->gradient;
}

/* The gradients, and the padding between them. */
static struct memory gradient_memory(struct program *program, const struct liveness *liveness) {
  struct memory memory = {.arena = program->arena, .bytes = weights_type(program->gradients)->bytes};
  const struct weight **sorted = arena_alloc(program->arena, ((size_t)program->weights->count + 1) * sizeof *sorted);
  int n = 0;
  for (int i = 0; i < program->weights->count; i++)
    if (program->weights->items[i].gradient >= 0) sorted[n++] = &program->weights->items[i];
  qsort(sorted, (size_t)n, sizeof *sorted, compare_gradients);
  for (int i = 0; i < n; i++) {
    const struct parameter *parameter = sorted[i]->parameter;
    int64_t written = liveness->written[sorted[i] - program->weights->items];
    push(&memory, sorted[i]->gradient, 0);
    push(&memory, sorted[i]->gradient + shape_count(parameter->shape) * dtype_size(parameter->dtype),
         written < 0 ? 0 : written);
  }
  push(&memory, memory.bytes, 0);
  return memory;
}

static int stretch_at(const struct memory *memory, int64_t byte) {
  int low = 0, high = memory->count - 1;
  while (low < high) {
    int middle = (low + high) / 2;
    if (memory->items[middle].to <= byte)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

static void occupy(struct memory *memory, int64_t from, int64_t to) {
  struct memory old = *memory;
  memory->items = NULL;
  memory->count = memory->capacity = 0;
  for (int i = 0; i < old.count; i++) {
    const struct stretch *stretch = &old.items[i];
    push(memory, stretch->to < from ? stretch->to : from, stretch->until);
    if (stretch->to > from) push(memory, stretch->to < to ? stretch->to : to, 0);
    push(memory, stretch->to, stretch->until);
  }
}

/* ---- Fitting ---- */

static int64_t copy_bytes(const struct live_buffer *buffer) {
  return storage_bytes(buffer->storage) / buffer->storage->copies;
}

/* The start of the last stretch that prevents one copy from starting at `from`; -1: none does. */
static int64_t obstacle(const struct memory *memory, int64_t from, int64_t bytes, int64_t last) {
  for (int i = stretch_at(memory, from + bytes - 1); i >= 0 && memory->items[i].to > from; i--)
    if (memory->items[i].until <= last || memory->items[i].until == 0) return memory->items[i].from;
  return -1;
}

/* The highest address where copies first, first + 1, … fit in a row; -1: none. Models name first what comes first, and
 * its gradients are written last: low addresses are what others may need. */
static int64_t find_free(const struct memory *memory, const struct live_buffer *buffer, int first) {
  int64_t bytes = copy_bytes(buffer), at;
  int copies = buffer->storage->copies;
  at = memory->bytes - (copies - first) * bytes;
  while (at >= 0) {
    int64_t found = -1;
    at -= at % arena_aligned(1);
    for (int k = first; k < copies && found < 0; k++) {
      found = obstacle(memory, at + (k - first) * bytes, bytes, buffer->last[k]);
      if (found >= 0) at = found - (k + 1 - first) * bytes;
    }
    if (found < 0) return at;
  }
  return -1;
}

static int64_t latest(const struct live_buffer *buffer) {
  int64_t last = -1;
  for (int k = 0; k < buffer->storage->copies; k++)
    if (buffer->last[k] > last) last = buffer->last[k];
  return last;
}

/* What is in use the longest has the least choice. */
static int compare_buffers(const void *left, const void *right) {
  const struct live_buffer *a = left, *b = right;
  int64_t p = latest(a), q = latest(b);
  if (p != q) return p > q ? -1 : 1;
  p = storage_bytes(a->storage);
  q = storage_bytes(b->storage);
  if (p != q) return p > q ? -1 : 1;
  return strcmp(a->storage->name, b->storage->name);
}

static void add_alias(struct program *program, struct memory *memory, struct storage *storage, int64_t at) {
  program->aliases.items[program->aliases.count++] = (struct alias){.storage = storage, .at = at};
  occupy(memory, at, at + storage_bytes(storage));
}

/* What would have an alias if the first iterations, for which there is no memory, were peeled off;
 * program->aliases.peeled names them. */
static int64_t note_peeling(struct program *program, const struct memory *memory, const struct live_buffer *buffer) {
  const struct storage *storage = buffer->storage;
  if (storage->frame == NULL) return 0;
  for (int k = 1; k < storage->copies; k++) {
    if (find_free(memory, buffer, k) < 0) continue;
    if (program->aliases.peeled == NULL)
      program->aliases.peeled = arena_alloc(program->arena, sizeof *program->aliases.peeled);
    ARENA_PUSH(program->arena, *program->aliases.peeled, ((struct peeled_loop){storage->call->id, k}));
    return (storage->copies - k) * copy_bytes(buffer);
  }
  return 0;
}

/* ---- What has an alias ---- */

static int compare_aliases(const void *left, const void *right) {
  const struct alias *a = left, *b = right;
  return a->at < b->at ? -1 : a->at > b->at;
}

/* Among those that have names. */
static bool is_alias(const void *context, const char *name) {
  const struct program *program = context;
  for (int i = 0; i < program->aliases.count; i++)
    if (program->aliases.items[i].name != NULL && strcmp(program->aliases.items[i].name, name) == 0) return true;
  return false;
}

static void name_aliases(struct program *program) {
  for (int i = 0; i < program->aliases.count; i++) {
    struct alias *alias = &program->aliases.items[i];
    alias->name = free_name(program->arena, alias->storage->name, is_alias, program);
    alias->storage->alias = alias;
  }
}

/* What a function saves itself, once others are elsewhere; a frame of nothing is none. */
static void count_saved(struct program *program, struct function *function) {
  struct storage_list remaining = {0};
  function->saved_bytes = 0;
  for (int i = 0; i < function->storages.count; i++) {
    struct storage *storage = function->storages.items[i];
    bool own = storage->kind == STORAGE_SAVED && storage->alias == NULL;
    if (own && storage->frame != NULL && runs_once(program, storage->frame)) {
      count_saved(program, storage->frame);
      storage->count = storage->frame->saved_bytes / dtype_size(storage->dtype);
      function->aliased |= storage->frame->aliased;
      if (storage->count == 0) continue;
    }
    function->aliased |= storage->alias != NULL;
    if (own) function->saved_bytes += arena_aligned(storage_bytes(storage));
    ARENA_PUSH(program->arena, remaining, storage);
  }
  function->storages = remaining;
}

static void finish_aliases(struct program *program) {
  qsort(program->aliases.items, (size_t)program->aliases.count, sizeof *program->aliases.items, compare_aliases);
  name_aliases(program);
  count_saved(program, program->entry.forward);
}

/* Of several ranks others read gradients, too, while the backward continues; those of layers on a disk share memory. */
static bool can_alias(const struct program *program) {
  const struct job *job = program->job;
  return program->entry.backward != NULL && program->target->kernels.in_order &&
         program->ranks.collectives.count == 0 && !layers_are_on_disk(program) && job->accumulation.num_steps == 1 &&
         !job_optimizer(job)->averages;
}

void alias_gradients(struct program *program) {
  if (!can_alias(program)) return;
  struct liveness liveness;
  find_liveness(program, &liveness);
  struct memory memory = gradient_memory(program, &liveness);
  int n = liveness.buffers.count;
  int64_t least = program->entry.forward->saved_bytes / SMALLEST_FRACTION, peeled = 0;
  qsort(liveness.buffers.items, (size_t)n, sizeof *liveness.buffers.items, compare_buffers);
  program->aliases.items = arena_alloc(program->arena, ((size_t)n + 1) * sizeof *program->aliases.items);
  for (int i = 0; i < n; i++) {
    const struct live_buffer *buffer = &liveness.buffers.items[i];
    if (storage_bytes(buffer->storage) < least) continue;
    int64_t at = find_free(&memory, buffer, 0);
    if (at >= 0)
      add_alias(program, &memory, buffer->storage, at);
    else
      peeled += note_peeling(program, &memory, buffer);
  }
  int64_t worth = program->figures.bytes.total / LEAST_OF_ARENA;
  if (aliased_bytes(program) + peeled < worth) program->aliases.peeled = NULL;
  if (aliased_bytes(program) < worth) program->aliases.count = 0;
  if (program->aliases.count > 0) finish_aliases(program);
}

int64_t aliased_bytes(const struct program *program) {
  int64_t bytes = 0;
  for (int i = 0; i < program->aliases.count; i++)
    bytes += arena_aligned(storage_bytes(program->aliases.items[i].storage));
  return bytes;
}

/* ---- Peeled loops ---- */

static struct node *node_of(const struct graph *graph, int id) {
  for (int r = 0; r < graph->n_regions; r++)
    for (int i = 0; i < graph->regions[r]->nodes.count; i++)
      if (graph->regions[r]->nodes.items[i]->id == id) return graph->regions[r]->nodes.items[i];
  return NULL;
}

void peel_loops(struct graph *graph, const struct peeled_loops *peeled) {
  for (int i = 0; peeled != NULL && i < peeled->count; i++)
    peel_iterations(graph, node_of(graph, peeled->items[i].node), peeled->items[i].count);
}
