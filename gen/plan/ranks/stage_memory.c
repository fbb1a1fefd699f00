#include "gen/plan/ranks/stage_memory.h"

#include <stdlib.h>
#include <string.h>

#include "gen/program/sharding.h"
#include "gen/program/stage_parameters.h"
#include "gen/program/state.h"
#include "gen/program/storage.h"
#include "gen/program/target.h"
#include "gen/program/weights.h"

/* ---- Ranges ---- */

static void add(const struct program *program, struct byte_ranges *ranges, int64_t first, int64_t bytes) {
  const struct byte_range range = {first, first + arena_aligned(bytes)};
  if (bytes > 0) ARENA_PUSH(program->arena, *ranges, range);
}

static int by_first(const void *a, const void *b) {
  const int64_t one = ((const struct byte_range *)a)->first, other = ((const struct byte_range *)b)->first;
  return (one > other) - (one < other);
}

/* In order, with those that touch as one. */
static struct byte_ranges joined(struct byte_ranges ranges) {
  int left = 0;
  if (ranges.count == 0) return ranges;
  qsort(ranges.items, (size_t)ranges.count, sizeof *ranges.items, by_first);
  for (int i = 1; i < ranges.count; i++) {
    struct byte_range *last = &ranges.items[left];
    if (ranges.items[i].first > last->end)
      ranges.items[++left] = ranges.items[i];
    else if (ranges.items[i].end > last->end)
      last->end = ranges.items[i].end;
  }
  ranges.count = left + 1;
  return ranges;
}

int64_t byte_ranges_sum(const struct byte_ranges *ranges) {
  int64_t bytes = 0;
  for (int i = 0; i < ranges->count; i++) bytes += ranges->items[i].end - ranges->items[i].first;
  return bytes;
}

/* ---- Parameters and states ---- */

struct byte_ranges stage_tree_ranges(const struct program *program, const struct weight_tree *tree, int rank) {
  struct byte_ranges ranges = {0};
  for (int i = 0; i < program->weights->count; i++) {
    const struct weight *weight = &program->weights->items[i];
    const bool frozen = tree == program->gradients && tree != program->weights && weight->gradient < 0;
    if (frozen || !rank_uses(&program->ranks.pipeline, rank, weight->path)) continue;
    add(program, &ranges, weight_offset(tree, weight->place),
        shape_count(weight->parameter->shape) * dtype_size(DTYPE_FLOAT32));
  }
  return joined(ranges);
}

/* Of an array that ranks of a stage divide, too: this rank's part of each flat range. */
static struct byte_ranges own_ranges(const struct program *program, const struct state *array, int rank) {
  const int64_t size = dtype_size(array->dtype);
  struct byte_ranges ranges = {0};
  for (int i = 0; i < program->optimizer.flat_ranges.count; i++) {
    const struct flat_range *range = &program->optimizer.flat_ranges.items[i];
    int64_t first;
    const int64_t count = shard_of_state(program, array, range, &first);
    if (range->stage == rank && count > 0) add(program, &ranges, first * size, count * size);
  }
  return joined(ranges);
}

/* The same bytes of an array with elements of another size than float32. */
static struct byte_ranges of_size(struct byte_ranges ranges, int64_t size) {
  for (int i = 0; i < ranges.count; i++) {
    ranges.items[i].first = ranges.items[i].first / dtype_size(DTYPE_FLOAT32) * size;
    ranges.items[i].end = ranges.items[i].end / dtype_size(DTYPE_FLOAT32) * size;
  }
  return ranges;
}

/* Slices begin where the ones before them end, or at the next line. */
static struct byte_ranges slice_ranges(const struct program *program, const struct state *state, int rank) {
  struct byte_ranges ranges = {0};
  for (int i = 0; i < state->n_slices; i++) {
    const struct state_slice *slice = &state->slices[i];
    if (slice->weight == NULL || rank_uses(&program->ranks.pipeline, rank, slice->weight->path))
      add(program, &ranges, slice->first * dtype_size(state->dtype),
          shape_count(slice->shape) * dtype_size(state->dtype));
  }
  return joined(ranges);
}

static struct byte_ranges state_ranges(const struct program *program, const struct state *state, int rank) {
  if (state->whole > 0) return own_ranges(program, state, rank);
  if (state->n_slices > 0) return slice_ranges(program, state, rank);
  return of_size(stage_tree_ranges(program, program->weights, rank), dtype_size(state->dtype));
}

/* ---- Saved values ---- */

static bool has(const struct step *step, int stage) {
  return (step->stages >> stage & 1) != 0;
}

/* Whether a stage has made what a function that stages divide gives: the last of its stages, in the backward the first.
 */
static bool gives(const struct step *step, int stage) {
  const struct function *callee = step->callee;
  if (callee == NULL || !callee->staged) return true;
  return stage == callee->first_stage + (callee->forward != NULL ? 0 : callee->n_stages - 1);
}

/* Whether a stage makes it in the function, or in its backward for what is deferred there. */
static bool writes(const struct function *function, const struct storage *storage, int stage) {
  for (int i = 0; i < function->n_steps; i++)
    for (int k = 0;
         has(&function->steps[i], stage) && gives(&function->steps[i], stage) && k < function->steps[i].node->n_outputs;
         k++) {
      const struct view *output = &function->steps[i].outputs[k];
      if (output->storage != NULL && storage_root(output->storage) == storage) return true;
    }
  if (function->backward != NULL && function->backward->deferred != NULL)
    return writes(function->backward, storage, stage);
  return false;
}

/* What the stage receives of it: of a row of several, one each. */
static void add_received(const struct program *program, const struct storage *storage, int stage, int64_t at,
                         struct byte_ranges *ranges) {
  const struct crossing_list *crossings = &program->ranks.pipeline.crossings;
  for (int i = 0; i < crossings->count; i++) {
    const struct crossing *crossing = &crossings->items[i];
    const struct storage *into = crossing->into != NULL ? storage_root(crossing->into->storage) : crossing->storage;
    const int64_t first = crossing->into != NULL ? crossing->into->offset : crossing->first;
    if (into == storage && crossing->to == stage)
      add(program, ranges, at + first * dtype_size(storage->dtype), crossing->count * dtype_size(storage->dtype));
  }
}

static const struct step *step_of(const struct function *function, const struct node *call) {
  for (int i = 0; i < function->n_steps; i++)
    if (function->steps[i].node == call) return &function->steps[i];
  return NULL;
}

/* What a stage saves in a function that stages divide, which begins at `at`. */
static void add_saved(const struct program *program, const struct function *function, int stage, int64_t at,
                      struct byte_ranges *ranges) {
  for (int i = 0; i < function->storages.count; i++) {
    const struct storage *storage = function->storages.items[i];
    if (storage->kind != STORAGE_SAVED || storage->alias != NULL) continue;
    const struct step *step = storage->frame != NULL ? step_of(function, storage->call) : NULL;
    const bool staged = step != NULL && step->callee->staged;
    if (staged && has(step, stage))
      add_saved(program, step->callee, stage, at, ranges);
    else if (storage->frame != NULL ? step == NULL || has(step, stage) : writes(function, storage, stage))
      add(program, ranges, at, storage_bytes(storage));
    else
      add_received(program, storage, stage, at, ranges);
    at += arena_aligned(storage_bytes(storage));
  }
}

struct byte_ranges stage_saved_ranges(const struct program *program, int rank) {
  const struct pipeline *pipeline = &program->ranks.pipeline;
  struct byte_ranges ranges = {0};
  for (int s = rank; s < pipeline->stages; s += pipeline->ranks)
    for (int64_t slot = 0; slot < pipeline->slots[s]; slot++)
      add_saved(program, program->entry.forward, s, slot * program->entry.forward->saved_bytes, &ranges);
  return joined(ranges);
}

int64_t stage_slot_bytes(const struct program *program, int stage) {
  struct byte_ranges ranges = {0};
  add_saved(program, program->entry.forward, stage, 0, &ranges);
  ranges = joined(ranges);
  return byte_ranges_sum(&ranges);
}

/* ---- What is not used ---- */

static void add_unused(struct program *program, int rank, const char *member, int64_t bytes, struct byte_ranges used) {
  int64_t at = 0;
  for (int i = 0; i <= used.count; i++) {
    const int64_t end = i < used.count ? used.items[i].first : bytes;
    const struct unused_range range = {rank, member, at, end - at};
    if (end > at) ARENA_PUSH(program->arena, program->ranks.pipeline.unused, range);
    if (i < used.count) at = used.items[i].end;
  }
}

static void add_parameters(struct program *program, int rank) {
  const int64_t bytes = weights_type(program->weights)->bytes, size = dtype_size(program->bits16);
  const struct byte_ranges own = own_ranges(program, &(struct state){.dtype = DTYPE_FLOAT32}, rank);
  const bool trains = program->kind == PROGRAM_TRAIN;
  const int64_t own_bytes = program->ranks.own_elements * dtype_size(DTYPE_FLOAT32);
  add_unused(program, rank, "weights", bytes, stage_tree_ranges(program, program->weights, rank));
  if (trains)
    add_unused(program, rank, "gradients", weights_type(program->gradients)->bytes,
               stage_tree_ranges(program, program->gradients, rank));
  if (trains && shard_has_own_gradients(program)) add_unused(program, rank, "all_gradients", own_bytes, own);
  if (program->bits16 != DTYPE_FLOAT32)
    add_unused(program, rank, arena_printf(program->arena, "weights_%s", dtype_short_name(program->bits16)),
               bytes / dtype_size(DTYPE_FLOAT32) * size,
               of_size(stage_tree_ranges(program, program->weights, rank), size));
}

/* The first state is the weights, which are a state of their own where ranks have parts of them. */
static void add_states(struct program *program, int rank) {
  for (int i = 0; i < program->states.count; i++) {
    const struct state *state = &program->states.items[i];
    const bool of_weights = state->whole > 0 || state->n_slices > 0 || state->name[0] == '\0';
    const bool mirrors = state->count * dtype_size(DTYPE_FLOAT32) == program->weights->bytes;
    if (state->on_host || (i == 0 && state->whole == 0) || !(of_weights || mirrors)) continue;
    add_unused(program, rank, state->member, state->count * dtype_size(state->dtype),
               state_ranges(program, state, rank));
  }
}

static void add_outgoing(struct program *program, int rank) {
  const struct pipeline *pipeline = &program->ranks.pipeline;
  for (int i = 0; i < pipeline->crossings.count; i++) {
    const struct crossing *crossing = &pipeline->crossings.items[i];
    if (crossing->outgoing != NULL && crossing->from % pipeline->ranks != rank)
      add_unused(program, rank, crossing->outgoing, crossing->count * dtype_size(crossing->storage->dtype),
                 (struct byte_ranges){0});
  }
}

void plan_stage_memory(struct program *program) {
  const struct pipeline *pipeline = &program->ranks.pipeline;
  if (!program->target->memory.separate || program->aliases.count > 0) return;
  for (int rank = 0; rank < pipeline->ranks && pipeline->stages > 0; rank++) {
    add_parameters(program, rank);
    add_states(program, rank);
    add_outgoing(program, rank);
    add_unused(program, rank, "saved", pipeline->max_slots * program->entry.forward->saved_bytes,
               stage_saved_ranges(program, rank));
  }
}

int64_t stage_mapped_bytes(const struct program *program, int rank) {
  int64_t bytes = program->figures.bytes.total;
  for (int i = 0; i < program->ranks.pipeline.unused.count; i++)
    if (program->ranks.pipeline.unused.items[i].rank == rank) bytes -= program->ranks.pipeline.unused.items[i].bytes;
  return bytes;
}
