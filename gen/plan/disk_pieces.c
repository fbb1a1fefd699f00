#include "gen/plan/disk_pieces.h"

#include <stdlib.h>

#include "gen/plan/memory/completion.h"
#include "gen/plan/ranks/fsdp_layers.h"
#include "gen/program/storage.h"
#include "gen/program/streams.h"
#include "gen/program/weight_names.h"
#include "gen/program/weights.h"

/* A weight where it is in memory: elements from the first one of all weights and of all gradients on. */
struct placed {
  struct weight *weight;
  int64_t at, gradient, count;
  int unit;
};

struct pieces {
  struct program *program;
  struct placed *placed; /* by their positions among the weights */
  struct disk_piece *items;
  int count, capacity;
  int *of; /* by item of `placed`: its piece, until pieces are sorted */
};

static int64_t elements(int64_t bytes) {
  return bytes / dtype_size(DTYPE_FLOAT32);
}

static int by_position(const void *left, const void *right) {
  const struct placed *a = left, *b = right;
  if (a->at != b->at) return a->at < b->at ? -1 : 1;
  return a->unit - b->unit;
}

static void place_weights(struct pieces *pieces) {
  struct program *program = pieces->program;
  const int count = program->weights->count;
  pieces->placed = arena_alloc(program->arena, ((size_t)count + 1) * sizeof *pieces->placed);
  pieces->of = arena_alloc(program->arena, ((size_t)count + 1) * sizeof *pieces->of);
  for (int i = 0; i < count; i++) {
    struct weight *weight = &program->weights->items[i];
    const int64_t bytes = arena_aligned(shape_count(weight->parameter->shape) * dtype_size(DTYPE_FLOAT32));
    pieces->placed[i] = (struct placed){weight, elements(weight_offset(program->weights, weight->place)),
                                        elements(weight_offset(program->gradients, weight->place)), elements(bytes),
                                        fsdp_unit_of(program, weight)};
  }
  qsort(pieces->placed, (size_t)count, sizeof *pieces->placed, by_position);
}

static void add_layers(struct pieces *pieces) {
  struct program *program = pieces->program;
  for (int u = 0; u < program->ranks.fsdp_units.count; u++) {
    const char *path = program->ranks.fsdp_units.items[u].paths[0];
    const struct disk_piece piece = {.unit = u,
                                     .weights = elements(weight_offset(program->weights, path)),
                                     .gradients = elements(weight_offset(program->gradients, path)),
                                     .count = elements(streamed_unit_bytes(program, u))};
    ARENA_PUSH(program->arena, *pieces, piece);
  }
}

/* Weights and gradients have the same order, and other slots of layers in between. */
static void add_others(struct pieces *pieces) {
  struct disk_piece *last = NULL;
  for (int i = 0; i < pieces->program->weights->count; i++) {
    const struct placed *p = &pieces->placed[i];
    if (p->unit >= 0) {
      pieces->of[i] = p->unit;
      continue;
    }
    if (last == NULL || p->at != last->weights + last->count || p->gradient != last->gradients + last->count) {
      const struct disk_piece piece = {.unit = -1, .weights = p->at, .gradients = p->gradient};
      ARENA_PUSH(pieces->program->arena, *pieces, piece);
      last = &pieces->items[pieces->count - 1];
    }
    last->count = p->at + p->count - last->weights;
    pieces->of[i] = pieces->count - 1;
  }
}

static int larger(int a, int b) {
  return a > b ? a : b;
}

/* When each piece has all its gradients, and nothing reads its weights any more. */
static void find_ready(struct pieces *pieces, const struct completion *completion) {
  for (int i = 0; i < pieces->program->weights->count; i++) {
    const ptrdiff_t weight = pieces->placed[i].weight - pieces->program->weights->items;
    struct disk_piece *piece = &pieces->items[pieces->of[i]];
    piece->ready = larger(piece->ready, larger(completion->ready[weight], completion->freed[weight]));
  }
}

/* Layers have one memory for gradients: those of one are used up before those of the next one are written. */
static bool check_order(const struct pieces *pieces, const struct completion *completion, struct diagnostics *diags) {
  const struct program *program = pieces->program;
  for (int i = 0; i < program->weights->count; i++) {
    const struct placed *own = &pieces->placed[i];
    const int first = completion->first[own->weight - program->weights->items];
    const struct disk_piece *piece = &pieces->items[pieces->of[i]];
    for (int u = 0; u < program->ranks.fsdp_units.count && own->unit >= 0 && first > 0; u++) {
      const struct disk_piece *other = &pieces->items[u];
      if (u == own->unit || other->gradients != piece->gradients || other->ready < first || piece->ready < other->ready)
        continue;
      diag_error(diags, job_where(program->job, "parallelism.offload.param"),
                 "the backward writes the gradient of '%s' before that of layer '%s' is complete, and layers have one "
                 "memory for gradients",
                 own->weight->path, program->ranks.fsdp_units.items[u].paths[0]);
      diag_help(diags, "leave out parallelism.offload.param: optimizer: nvme has the states on a disk");
      return false;
    }
  }
  return true;
}

static int by_ready(const void *left, const void *right) {
  const struct disk_piece *a = left, *b = right;
  if (a->ready != b->ready) return a->ready > b->ready ? -1 : 1;
  return a->weights < b->weights ? -1 : a->weights > b->weights;
}

/* The largest layer is whole buckets, but for less than a UNIT in each. */
static void divide(struct pieces *pieces) {
  struct program_disk *disk = &pieces->program->disk;
  int64_t largest = 1;
  for (int i = 0; i < pieces->count; i++)
    if (pieces->items[i].unit >= 0 && pieces->items[i].count > largest) largest = pieces->items[i].count;
  const int64_t buckets = (largest + DISK_MOST - 1) / DISK_MOST;
  disk->bucket = ((largest + buckets - 1) / buckets + DISK_UNIT - 1) / DISK_UNIT * DISK_UNIT;
  for (int i = 0; i < pieces->count; i++) {
    pieces->items[i].first = disk->buckets;
    pieces->items[i].buckets = (pieces->items[i].count + disk->bucket - 1) / disk->bucket;
    disk->buckets += pieces->items[i].buckets;
  }
  disk->elements = disk->buckets * disk->bucket;
  disk->pieces = pieces->items;
  disk->n_pieces = pieces->count;
}

static void place_states(const struct pieces *pieces) {
  const struct program_disk *disk = &pieces->program->disk;
  for (int i = 0; i < pieces->program->weights->count; i++) {
    const struct placed *p = &pieces->placed[i];
    for (int k = 0; k < disk->n_pieces; k++) {
      const struct disk_piece *piece = &disk->pieces[k];
      if (piece->unit != p->unit || p->at < piece->weights || p->at >= piece->weights + piece->count) continue;
      p->weight->gradient = (piece->first * disk->bucket + p->at - piece->weights) * dtype_size(DTYPE_FLOAT32);
    }
  }
}

bool plan_disk_pieces(struct program *program, struct diagnostics *diags) {
  struct pieces pieces = {.program = program};
  struct completion completion;
  find_completion(program, &completion);
  place_weights(&pieces);
  add_layers(&pieces);
  add_others(&pieces);
  find_ready(&pieces, &completion);
  if (!check_order(&pieces, &completion, diags)) return false;
  qsort(pieces.items, (size_t)pieces.count, sizeof *pieces.items, by_ready);
  divide(&pieces);
  place_states(&pieces);
  return true;
}
