#include "gen/plan/ranks/sharing.h"

#include "gen/base/quantity.h"
#include "gen/plan/ranks/collectives.h"
#include "gen/program/sending.h"
#include "gen/program/sharding.h"
#include "gen/program/target.h"
#include "gen/program/weights.h"

/* Sums: what a rank has of the others' shards, in its own memory; and of its shard, in each of theirs. Gradients of
 * floats are read where they lie. */
static void add_sums(const struct job *job, struct shared_bytes *bytes, enum axis axis, int64_t whole, bool in_arena) {
  int64_t ranks = job->parallelism.axes[axis];
  if (ranks == 1 || !is_within_machine(job, axis)) return;
  bytes->own += in_arena ? 0 : whole / ranks * (ranks - 1);
  bytes->touched += (in_arena ? 1 : 2) * (whole / ranks * (ranks - 1));
}

/* Gathers: a rank's shard in its own memory, the others' in theirs. Sharded weights are read where they lie.
 */
static void add_gathers(const struct program *program, struct shared_bytes *bytes, int64_t whole) {
  const struct job *job = program->job;
  int64_t ranks = job->parallelism.axes[AXIS_DP_SHARD];
  bool sharded = job->parallelism.zero_stage == 3;
  if (!is_within_machine(job, AXIS_DP_SHARD)) return;
  bytes->own += sharded ? 0 : whole / ranks;
  bytes->touched += sharded ? (ranks - 1) * program->ranks.own_elements * dtype_size(DTYPE_FLOAT32) : whole;
}

/* Bytes of the gradients of what is no expert's. */
static int64_t whole_bytes(const struct program *program) {
  int64_t bytes = 0;
  for (int i = 0; i < program->ranks.collectives.count; i++) {
    const struct collective *c = &program->ranks.collectives.items[i];
    if (c->after != NULL && !c->dealt) bytes += c->count * c->width;
  }
  return bytes;
}

/* Bytes of a rank's parts of sums that go on along another axis. */
static int64_t bytes_summed_twice(const struct program *program) {
  int64_t elements = 0;
  for (int i = 0; i < program->optimizer.flat_ranges.count; i++) {
    const struct flat_range *range = &program->optimizer.flat_ranges.items[i];
    if (shard_is_summed_twice(program, range)) elements += shard_last(program, range);
  }
  return elements * dtype_size(DTYPE_FLOAT32);
}

struct shared_bytes shared_bytes(const struct program *program) {
  const struct job *job = program->job;
  struct shared_bytes bytes = {0};
  int64_t size = dtype_size(DTYPE_FLOAT32);
  if (program->ranks.collectives.count == 0 || !program->target->ranks.shared_memory) return bytes;
  int64_t weights = weights_type(program->weights)->bytes;
  int64_t gradients = weights_type(program->gradients)->bytes;
  if (is_sharded(program)) add_gathers(program, &bytes, weights);
  if (job_has_tree(job) && !program->ranks.tree.by_buckets) return bytes;
  if (shard_has_own_gradients(program)) {
    add_sums(job, &bytes, AXIS_DP_SHARD, gradients, true);
    if (!job_has_tree(job) && shard_next_axis(program) != AXES)
      add_sums(job, &bytes, shard_next_axis(program), bytes_summed_twice(program), false);
    return bytes;
  }
  bool whole = job->parallelism.wire == PRECISION_NO && program->ranks.n_buckets > 0;
  gradients = gradients / size * wire_width(job);
  if (job->parallelism.axes[AXIS_EP] > 1) { /* in place along the first axis alone */
    add_sums(job, &bytes, AXIS_DP_REPLICATE, gradients, true);
    add_sums(job, &bytes, AXIS_EP, whole_bytes(program), job->parallelism.axes[AXIS_DP_REPLICATE] == 1);
    return bytes;
  }
  add_sums(job, &bytes, AXIS_DP_REPLICATE, job->parallelism.local_steps > 0 ? weights : gradients, whole);
  add_sums(job, &bytes, AXIS_DP_REPLICATE, (program->ranks.compression.left + program->ranks.compression.right) * size,
           false);
  return bytes;
}

const char *sharing_text(const struct program *program) {
  struct shared_bytes bytes = shared_bytes(program);
  if (program->ranks.collectives.count == 0 || !program->target->ranks.shared_memory) return "";
  if (bytes.own == 0) return "process   outside the arena: libraries and MPI, some 30 MiB\n";
  return arena_printf(
      program->arena,
      "process   outside the arena: %s a rank for exchanges within a machine; libraries and MPI, some 30 MiB\n",
      bytes_text(program->arena, bytes.own));
}
