#include "gen/plan/memory/lend.h"

#include <stdlib.h>
#include <string.h>

#include "gen/ir/names.h"
#include "gen/plan/graph/segments.h"
#include "gen/plan/memory/place.h"
#include "gen/plan/memory/tenancy.h"
#include "gen/plan/memory/weights.h"
#include "gen/plan/optimizers.h"
#include "gen/plan/target.h"

enum { LEAST_OF_KEPT = 64 }; /* a loan's least share of what is kept */

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
static struct memory gradient_memory(struct program *program, const struct tenancy *tenancy) {
  const struct program *trained = program->trained;
  struct memory memory = {.arena = program->arena, .bytes = weights_type(trained)->bytes};
  const struct weight **sorted = arena_alloc(program->arena, ((size_t)program->n_weights + 1) * sizeof *sorted);
  int n = 0;
  for (int i = 0; i < program->n_weights; i++)
    if (program->weights[i].gradient >= 0) sorted[n++] = &program->weights[i];
  qsort(sorted, (size_t)n, sizeof *sorted, compare_gradients);
  for (int i = 0; i < n; i++) {
    const struct parameter *parameter = sorted[i]->parameter;
    int64_t written = tenancy->written[sorted[i] - program->weights];
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

static int64_t copy_bytes(const struct tenant *tenant) {
  return storage_bytes(tenant->storage) / tenant->storage->copies;
}

/* Where the last stretch begins that keeps one copy from lying at `from`; -1: none does. */
static int64_t obstacle(const struct memory *memory, int64_t from, int64_t bytes, int64_t last) {
  for (int i = stretch_at(memory, from + bytes - 1); i >= 0 && memory->items[i].to > from; i--)
    if (memory->items[i].until <= last || memory->items[i].until == 0) return memory->items[i].from;
  return -1;
}

/* The highest address where copies first, first + 1, … fit in a row; -1: none. Models name first what comes first, and
 * its gradients are written last: low addresses are what others may need. */
static int64_t find_room(const struct memory *memory, const struct tenant *tenant, int first) {
  int64_t bytes = copy_bytes(tenant), at;
  int copies = tenant->storage->copies;
  at = memory->bytes - (copies - first) * bytes;
  while (at >= 0) {
    int64_t found = -1;
    at -= at % arena_aligned(1);
    for (int k = first; k < copies && found < 0; k++) {
      found = obstacle(memory, at + (k - first) * bytes, bytes, tenant->last[k]);
      if (found >= 0) at = found - (k + 1 - first) * bytes;
    }
    if (found < 0) return at;
  }
  return -1;
}

static int64_t latest(const struct tenant *tenant) {
  int64_t last = -1;
  for (int k = 0; k < tenant->storage->copies; k++)
    if (tenant->last[k] > last) last = tenant->last[k];
  return last;
}

/* What is in use the longest has the least choice. */
static int compare_tenants(const void *left, const void *right) {
  const struct tenant *a = left, *b = right;
  int64_t p = latest(a), q = latest(b);
  if (p != q) return p > q ? -1 : 1;
  p = storage_bytes(a->storage);
  q = storage_bytes(b->storage);
  if (p != q) return p > q ? -1 : 1;
  return strcmp(a->storage->name, b->storage->name);
}

static void lend_to(struct program *program, struct memory *memory, struct storage *storage, int64_t at) {
  program->loans[program->n_loans++] = (struct loan){.storage = storage, .at = at};
  occupy(memory, at, at + storage_bytes(storage));
}

/* What would be lent if the first iterations that find no room stood apart. */
static int64_t set_apart(struct program *program, const struct memory *memory, const struct tenant *tenant) {
  const struct storage *storage = tenant->storage;
  if (storage->frame == NULL) return 0;
  for (int k = 1; k < storage->copies; k++) {
    if (find_room(memory, tenant, k) < 0) continue;
    if (program->apart == NULL) program->apart = arena_alloc(program->arena, sizeof *program->apart);
    ARENA_PUSH(program->arena, *program->apart, ((struct apart){storage->call->id, k}));
    return (storage->copies - k) * copy_bytes(tenant);
  }
  return 0;
}

/* ---- What is lent ---- */

static int compare_loans(const void *left, const void *right) {
  const struct loan *a = left, *b = right;
  return a->at < b->at ? -1 : a->at > b->at;
}

/* Among those that have names. */
static bool is_loan(const void *context, const char *name) {
  const struct program *program = context;
  for (int i = 0; i < program->n_loans; i++)
    if (program->loans[i].name != NULL && strcmp(program->loans[i].name, name) == 0) return true;
  return false;
}

static void name_loans(struct program *program) {
  for (int i = 0; i < program->n_loans; i++) {
    struct loan *loan = &program->loans[i];
    loan->name = free_name(program->arena, loan->storage->name, is_loan, program);
    loan->storage->loan = loan;
  }
}

/* What a function saves itself, once others lie elsewhere; a frame of nothing is none. */
static void count_saved(struct program *program, struct function *function) {
  struct storage_list kept = {0};
  function->saved_bytes = 0;
  for (int i = 0; i < function->storages.count; i++) {
    struct storage *storage = function->storages.items[i];
    bool own = storage->kind == STORAGE_SAVED && storage->loan == NULL;
    if (own && storage->frame != NULL && runs_once(program, storage->frame)) {
      count_saved(program, storage->frame);
      storage->count = storage->frame->saved_bytes / dtype_size(storage->dtype);
      function->lent |= storage->frame->lent;
      if (storage->count == 0) continue;
    }
    function->lent |= storage->loan != NULL;
    if (own) function->saved_bytes += arena_aligned(storage_bytes(storage));
    ARENA_PUSH(program->arena, kept, storage);
  }
  function->storages = kept;
}

static void settle(struct program *program) {
  int64_t before = program->forward->saved_bytes;
  qsort(program->loans, (size_t)program->n_loans, sizeof *program->loans, compare_loans);
  name_loans(program);
  count_saved(program, program->forward);
  program->bytes.activations -= before - program->forward->saved_bytes;
  program->bytes.total -= before - program->forward->saved_bytes;
}

/* Of several ranks others read gradients, too, while the backward goes on. */
static bool can_lend(const struct program *program) {
  const struct job *job = program->job;
  return program->backward != NULL && program->target->lends && program->collectives.count == 0 &&
         job->accumulation.num_steps == 1 && !job_optimizer(job)->averages;
}

void lend(struct program *program) {
  if (!can_lend(program)) return;
  struct tenancy tenancy;
  find_tenancy(program, &tenancy);
  struct memory memory = gradient_memory(program, &tenancy);
  int n = tenancy.tenants.count;
  int64_t least = program->forward->saved_bytes / LEAST_OF_KEPT, apart = 0;
  qsort(tenancy.tenants.items, (size_t)n, sizeof *tenancy.tenants.items, compare_tenants);
  program->loans = arena_alloc(program->arena, ((size_t)n + 1) * sizeof *program->loans);
  for (int i = 0; i < n; i++) {
    const struct tenant *tenant = &tenancy.tenants.items[i];
    if (storage_bytes(tenant->storage) < least) continue;
    int64_t at = find_room(&memory, tenant, 0);
    if (at >= 0)
      lend_to(program, &memory, tenant->storage, at);
    else
      apart += set_apart(program, &memory, tenant);
  }
  int64_t worth = program->bytes.total / LEAST_OF_ARENA;
  if (lent_bytes(program) + apart < worth) program->apart = NULL;
  if (lent_bytes(program) < worth) program->n_loans = 0;
  if (program->n_loans > 0) settle(program);
}

int64_t lent_bytes(const struct program *program) {
  int64_t bytes = 0;
  for (int i = 0; i < program->n_loans; i++) bytes += arena_aligned(storage_bytes(program->loans[i].storage));
  return bytes;
}

/* ---- Loops apart ---- */

static struct node *node_of(const struct graph *graph, int id) {
  for (int r = 0; r < graph->n_regions; r++)
    for (int i = 0; i < graph->regions[r]->nodes.count; i++)
      if (graph->regions[r]->nodes.items[i]->id == id) return graph->regions[r]->nodes.items[i];
  return NULL;
}

void part_loops(struct graph *graph, const struct apart_list *apart) {
  for (int i = 0; apart != NULL && i < apart->count; i++)
    part_iterations(graph, node_of(graph, apart->items[i].node), apart->items[i].count);
}
