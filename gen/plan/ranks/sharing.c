#include "gen/plan/ranks/sharing.h"

#include <stdlib.h>

#include "gen/base/quantity.h"
#include "gen/plan/ranks/collectives.h"
#include "gen/plan/ranks/compress.h"
#include "gen/plan/ranks/stage_bytes.h"
#include "gen/program/sending.h"
#include "gen/program/sharding.h"
#include "gen/program/target.h"
#include "gen/program/weights.h"

/* What Linux maps at once: of memory that nobody has written a page, and where a page is read that another process has
 * written, its neighbours that are there. */
enum { PAGE = 4 << 10, READ_AROUND = 64 << 10 };

/* Between a rank's part of a flat range and its part of the next one, in a tree of weights. */
struct gap {
  int64_t offset, bytes;
};

static int by_offset(const void *left, const void *right) {
  const struct gap *a = left, *b = right;
  return a->offset < b->offset ? -1 : a->offset > b->offset;
}

/* Bytes of these gaps that are mapped with the parts, `unit` at once: on average a unit of each, half at either end.
 * Layers that use the same memory in turn count once. */
static int64_t mapped_with_parts(const struct program *program, const struct weight_tree *tree, int rank,
                                 int64_t unit) {
  const struct flat_range_list *ranges = &program->optimizer.flat_ranges;
  struct gap *gaps = arena_alloc(program->arena, ((size_t)ranges->count + 1) * sizeof *gaps);
  int64_t bytes = 0;
  int count = 0;
  for (int i = 0; i < ranges->count; i++) {
    const struct flat_range *range = &ranges->items[i];
    if (range->stage != rank) continue;
    const int64_t others = (range->end - range->first - range->shard_size) * dtype_size(DTYPE_FLOAT32);
    gaps[count++] = (struct gap){weight_offset(tree, range->weight->place), others < unit ? others : unit};
  }
  qsort(gaps, (size_t)count, sizeof *gaps, by_offset);
  for (int i = 0; i < count; i++) bytes += i == 0 || gaps[i].offset != gaps[i - 1].offset ? gaps[i].bytes : 0;
  return bytes;
}

/* Sums: what a rank has of the others' shards, in its own memory; and of its shard, in each of theirs. Gradients of
 * floats are read where they are. */
static void add_sums(const struct program *program, struct shared_bytes *bytes, enum axis axis, int64_t whole,
                     bool in_arena) {
  int64_t ranks = ranks_along(program, axis);
  if (!is_within_machine(program->job, axis)) return;
  bytes->own += in_arena ? 0 : whole / ranks * (ranks - 1);
  bytes->touched += (in_arena ? 1 : 2) * (whole / ranks * (ranks - 1));
}

/* In the others' gradients, what is mapped with a rank's parts of them. */
static void add_reads_around(const struct program *program, int rank, enum axis axis, struct shared_bytes *bytes) {
  if (!is_within_machine(program->job, axis)) return;
  bytes->touched +=
      (ranks_along(program, axis) - 1) * mapped_with_parts(program, program->gradients, rank, READ_AROUND);
}

static bool has_stages(const struct program *program) {
  return program->ranks.pipeline.stages > 0;
}

/* Gathers: a rank's shard in its own memory, the others' in theirs. Sharded weights are read where they are.
 */
static void add_gathers(const struct program *program, int rank, struct shared_bytes *bytes) {
  int64_t ranks = ranks_along(program, program->mesh.shards), size = dtype_size(DTYPE_FLOAT32);
  int64_t whole = has_stages(program) ? stage_elements(program, rank) * size : weights_type(program->weights)->bytes;
  bool sharded = weights_are_split(program);
  if (!is_within_machine(program->job, program->mesh.shards)) return;
  const int64_t between = sharded ? 0 : mapped_with_parts(program, program->weights, rank, PAGE);
  bytes->own += sharded ? 0 : whole / ranks + between;
  const int64_t own = stage_own_elements(program, rank, AXES) * size;
  bytes->touched += sharded ? (ranks - 1) * own : whole + ranks * between;
  if (!sharded || !evaluation_gathers_averages(program)) return;
  bytes->own += own; /* the averages: others read layers of them */
  bytes->touched += ranks * own;
}

/* Bytes of buckets of gradients whose sums begin with an axis. */
static int64_t bytes_from(const struct program *program, enum axis axis) {
  int64_t bytes = 0;
  for (int i = 0; i < program->ranks.collectives.count; i++) {
    const struct collective *c = &program->ranks.collectives.items[i];
    if (c->after != NULL && c->axis == axis) bytes += c->count * c->width;
  }
  return bytes;
}

/* Bytes of what is added up along an axis after others: of a rank's parts, where sums are split. */
static int64_t bytes_after(const struct program *program, int rank, enum axis axis) {
  int64_t bytes = 0;
  if (is_sharded(program)) return stage_own_elements(program, rank, axis) * dtype_size(DTYPE_FLOAT32);
  if (has_stages(program)) return stage_summed_elements(program, rank, axis) * wire_width(program->job);
  for (int i = 0; i < program->ranks.collectives.count; i++) {
    const struct collective *c = &program->ranks.collectives.items[i];
    if (c->after != NULL && axes_have(c->then, axis)) bytes += c->count * c->width;
  }
  return bytes;
}

/* Bytes of what is added up along the first axis. */
static int64_t first_bytes(const struct program *program, int rank, enum axis axis) {
  const int64_t gradients = weights_type(program->gradients)->bytes / dtype_size(DTYPE_FLOAT32);
  if (has_stages(program) && shard_adds_up(program)) return stage_held_bytes(program, program->gradients, rank);
  if (has_stages(program)) return stage_summed_elements(program, rank, axis) * wire_width(program->job);
  if (program->job->parallelism.local_steps > 0) return weights_type(program->weights)->bytes;
  if (program->mesh.axes[axis].sharded == SHARDED_EXPERTS) return bytes_from(program, axis);
  return gradients * wire_width(program->job);
}

static void add_rank(struct shared_bytes *bytes, const struct program *program, int rank) {
  const struct axes axes = summed_along(program, NULL);
  if (is_sharded(program)) add_gathers(program, rank, bytes);
  if (axes.count == 0 || (job_has_tree(program->job) && !program->ranks.tree.by_buckets)) return;
  add_sums(program, bytes, axes.items[0], first_bytes(program, rank, axes.items[0]), sums_in_arena(program));
  if (is_sharded(program) && sums_in_arena(program)) add_reads_around(program, rank, axes.items[0], bytes);
  for (int i = 1; i < axes.count && !job_has_tree(program->job); i++)
    add_sums(program, bytes, axes.items[i], bytes_after(program, rank, axes.items[i]), false);
  add_sums(program, bytes, axes.items[0], stage_factors(program, rank) * dtype_size(DTYPE_FLOAT32), false);
}

struct shared_bytes shared_bytes(const struct program *program, int rank) {
  struct shared_bytes bytes = {0};
  if (program->ranks.collectives.count > 0 && program->target->ranks.shared_memory) add_rank(&bytes, program, rank);
  return bytes;
}

struct shared_bytes most_shared_bytes(const struct program *program) {
  struct shared_bytes most = shared_bytes(program, 0);
  for (int k = 1; k < program->ranks.pipeline.ranks; k++) {
    const struct shared_bytes bytes = shared_bytes(program, k);
    if (bytes.touched > most.touched) most = bytes;
  }
  return most;
}

const char *sharing_text(const struct program *program) {
  struct shared_bytes bytes = most_shared_bytes(program);
  if (program->ranks.collectives.count == 0 || !program->target->ranks.shared_memory) return "";
  if (bytes.own == 0) return "process   outside the arena: libraries and MPI, some 30 MiB\n";
  return arena_printf(
      program->arena,
      "process   outside the arena: %s a rank for exchanges within a machine; libraries and MPI, some 30 MiB\n",
      bytes_text(program->arena, bytes.own));
}
