#include "gen/plan/ranks/sharing.h"
#include "gen/plan/ranks/compress.h"

#include "gen/base/quantity.h"
#include "gen/plan/ranks/collectives.h"
#include "gen/plan/ranks/stage_bytes.h"
#include "gen/program/sending.h"
#include "gen/program/sharding.h"
#include "gen/program/target.h"
#include "gen/program/weights.h"

/* Sums: what a rank has of the others' shards, in its own memory; and of its shard, in each of theirs. Gradients of
 * floats are read where they are. */
static void add_sums(const struct program *program, struct shared_bytes *bytes, enum axis axis, int64_t whole,
                     bool in_arena) {
  int64_t ranks = ranks_along(program, axis);
  if (!is_within_machine(program->job, axis)) return;
  bytes->own += in_arena ? 0 : whole / ranks * (ranks - 1);
  bytes->touched += (in_arena ? 1 : 2) * (whole / ranks * (ranks - 1));
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
  bytes->own += sharded ? 0 : whole / ranks;
  const int64_t own = stage_own_elements(program, rank, AXES) * size;
  bytes->touched += sharded ? (ranks - 1) * own : whole;
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
