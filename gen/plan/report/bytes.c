#include "gen/plan/report/bytes.h"

#include <string.h>

#include "gen/ir/op.h"
#include "gen/plan/ranks/compress.h"
#include "gen/program/fp8.h"
#include "gen/program/library.h"
#include "gen/program/optimizers.h"
#include "gen/program/results.h"
#include "gen/program/sharding.h"
#include "gen/program/state.h"
#include "gen/program/storage.h"
#include "gen/program/streams.h"
#include "gen/program/target.h"
#include "gen/program/weights.h"

/* An array of the arena: of so many numbers, or of a shape. */
static int64_t array_bytes(int64_t count, enum dtype dtype) {
  return arena_aligned(count * dtype_size(dtype));
}

static int64_t shape_bytes(struct shape shape, enum dtype dtype) {
  return array_bytes(shape_count(shape), dtype);
}

static int64_t doubles_bytes(int64_t count) {
  return arena_aligned(count * (int64_t)sizeof(double));
}

static bool trains(const struct program *program) {
  return program->kind == PROGRAM_TRAIN;
}

/* Whether the device has an arena in addition to the host's, which checkpoints are then written from. */
static bool mirrored(const struct program *program) {
  return program->target->memory.separate;
}

/* What a rank has of sharded weights. */
static int64_t own_bytes(const struct program *program) {
  return program->ranks.own_elements * dtype_size(DTYPE_FLOAT32);
}

/* ---- What outlives a step, and its gradients ---- */

static int64_t cache_bytes(const struct program *program) {
  int64_t bytes = 0;
  for (int i = 0; i < program->weights->count; i++) {
    const struct parameter *parameter = program->weights->items[i].parameter;
    if (parameter->passing) bytes += shape_bytes(parameter->shape, DTYPE_FLOAT32);
  }
  return bytes;
}

static int64_t weight_bytes(const struct program *program) {
  int64_t all = weights_type(program->weights)->bytes, bytes = all - cache_bytes(program) + program->library.packed;
  if (target_copies(program) != DTYPE_FLOAT32) bytes += arena_aligned(all / 2);
  bool parts = trains(program) && weights_are_split(program);
  return bytes + (parts && !program->states.items[0].on_host ? own_bytes(program) : 0);
}

static int64_t gradient_bytes(const struct program *program) {
  if (!trains(program)) return 0;
  int64_t bytes = weights_type(program->gradients)->bytes;
  if (shard_has_own_gradients(program)) bytes += own_bytes(program);
  if (shard_needs_receive_buffer(program)) bytes += own_bytes(program);
  return bytes;
}

/* The first state is the weights. */
static void count_states(const struct program *program, struct memory_bytes *bytes) {
  bytes->averages = bytes->optimizer = bytes->host = bytes->disk = 0;
  for (int i = 0; i < program->states.count; i++) {
    const struct state *state = &program->states.items[i];
    if (state->on_host)
      bytes->host += state_bytes(state);
    else if (state->on_disk)
      bytes->disk += program->disk.bucket * program->disk.buckets * dtype_size(state->dtype);
    else if (strcmp(state->file, "ema") == 0)
      bytes->averages = state_bytes(state);
    else if (i > 0)
      bytes->optimizer += state_bytes(state);
  }
  bytes->optimizer += program->disk.slots * disk_slot_bytes(program);
  if (layers_are_on_disk(program)) bytes->disk += streamed_bytes(program, true);
}

/* ---- A micro-batch ---- */

/* Of how many micro-batches samples and saved values are there at a time. */
static int64_t micro_batches_held(const struct program *program) {
  return program->ranks.pipeline.stages > 0 ? program->ranks.pipeline.max_slots : 1;
}

/* Of an array of each of them: where the host sends a micro-batch as one record, records are one after the other. */
static int64_t held_bytes(const struct program *program, int64_t bytes) {
  const int64_t held = micro_batches_held(program);
  return mirrored(program) ? held * arena_aligned(bytes) : arena_aligned(held * bytes);
}

/* Its inputs and its outputs. */
static int64_t sample_bytes(const struct program *program) {
  const struct region *entry = program->graph->entry;
  const struct value_list results = step_results(program);
  int64_t bytes = 0;
  for (int i = 0; i < entry->inputs.count; i++)
    bytes += held_bytes(program, shape_count(largest_input(program, i)) * dtype_size(entry->inputs.items[i]->dtype));
  for (int i = 0; i < results.count; i++) bytes += shape_bytes(results.items[i]->shape, DTYPE_FLOAT32);
  if (program->step_end.takes_seed) bytes += array_bytes(1, DTYPE_FLOAT32);
  for (int i = 0; i < program->ranks.pipeline.crossings.count; i++) {
    const struct crossing *crossing = &program->ranks.pipeline.crossings.items[i];
    if (crossing->outgoing != NULL) bytes += array_bytes(crossing->count, crossing->storage->dtype);
  }
  if (program->entry.second_region == NULL) return bytes;
  if (program->evaluation.predicted != NULL) bytes += shape_bytes(program->evaluation.predicted->shape, DTYPE_INT32);
  if (program->evaluation.count != NULL && !program->step_end.counts) bytes += array_bytes(1, DTYPE_FLOAT32);
  return bytes;
}

/* Sizes of tensors in 8 bits that ranks compare. */
static int64_t exchanged_scales(const struct program *program) {
  return fp8_axes(program).count > 0 ? fp8_scales(program) : 0;
}

/* Gradients on their way: to other ranks, and into an update within the backward. */
static int64_t passing_bytes(const struct program *program) {
  bool squares = trains(program) && job_optimizer(program->job)->in_backward;
  return array_bytes(program->ranks.wire, DTYPE_BFLOAT16) +
         array_bytes(program->ranks.partial_gradients, DTYPE_FLOAT32) + compression_bytes(program) +
         doubles_bytes(exchanged_scales(program)) + array_bytes(program->ranks.tree.buffer, DTYPE_FLOAT32) +
         doubles_bytes(program->ranks.tree.losses) + (squares ? doubles_bytes(1) : 0);
}

/* Whether a device that makes the keys of random numbers itself must know the current micro-batch. */
static bool draws(const struct program *program) {
  if (program->entry.forward == NULL) return false;
  return program->entry.forward->random || (program->entry.backward != NULL && program->entry.backward->random) ||
         (program->entry.second != NULL && program->entry.second->random);
}

/* Of a device that gives logits to a host that chooses tokens: which position is the newest, and what is after it. */
static int64_t newest_bytes(const struct region *entry) {
  struct shape logits = entry->results.items[0]->shape;
  int64_t columns = logits.rank > 0 ? logits.dim[logits.rank - 1] : 1;
  return array_bytes(1, DTYPE_INT32) + array_bytes(columns, DTYPE_FLOAT32);
}

/* What a device with an arena of its own gets and reports. */
static int64_t report_bytes(const struct program *program) {
  if (!mirrored(program)) return 0;
  int64_t bytes = trains(program) ? program->target->memory.progress_bytes : 0;
  /* Of stages of a pipeline, also which slot is the current one. */
  const int64_t numbers = trains(program) && program->ranks.pipeline.stages > 0 ? micro_batches_held(program) + 1 : 1;
  if (program->kind == PROGRAM_GENERATE) bytes += newest_bytes(program->graph->entry);
  if (draws(program)) bytes += numbers * arena_aligned((int64_t)sizeof(uint64_t));
  if (program->step_end.uneven_inputs) bytes += array_bytes(1, DTYPE_FLOAT32);
  return bytes;
}

/* ---- While functions run ---- */

/* Libraries want it at a multiple of 256, the arena's arrays are at multiples of 64. */
static int64_t workspace_of(const struct program *program) {
  int64_t bytes = program->target->library.workspace_bytes;
  bool deterministic = program->job->training.deterministic;
  for (int i = 0; i < program->kernels.count && bytes > 0; i++) {
    const struct node *node = program->kernels.items[i]->node;
    bool asks = node->kind->library.workspace != NULL && library_computes(program, program->kernels.items[i]);
    int64_t workspace = asks ? node->kind->library.workspace(node, deterministic) : 0;
    if (workspace > bytes) bytes = workspace;
  }
  return bytes > 0 ? arena_aligned(bytes) + 192 : 0;
}

/* As many as the device has, or as a kernel leaves. */
static int64_t sums_of(const struct program *program) {
  int64_t most = program->target->memory.partial_sums;
  for (int i = 0; i < program->kernels.count && most > 0; i++) {
    const struct node *node = program->kernels.items[i]->node;
    int64_t noted =
        node->kind->kernel.noted_input > 0 ? shape_count(node->inputs[node->kind->kernel.noted_input - 1]->shape) : 0;
    if (noted > most) most = noted;
  }
  return most;
}

/* One function of a step runs at a time: the most that any of them needs. */
static int64_t step_scratch(const struct program *program) {
  const struct function *functions[] = {program->entry.forward, program->entry.backward, program->entry.deferred};
  int64_t most = program->optimizer.scratch;
  for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++)
    if (functions[i] != NULL && functions[i]->scratch_bytes > most) most = functions[i]->scratch_bytes;
  return most;
}

int64_t evaluation_excess(const struct program *program) {
  if (program->entry.second == NULL) return 0;
  int64_t reused = evaluation_reuses_saved(program) ? program->figures.bytes.activations : 0;
  int64_t excess = program->entry.second->scratch_bytes - reused - step_scratch(program);
  return excess > 0 ? excess : 0;
}

static int64_t scratch_bytes(const struct program *program) {
  return step_scratch(program) + evaluation_excess(program) + program->library.workspace +
         array_bytes(program->kernels.sums, DTYPE_FLOAT32);
}

void count_bytes(struct program *program) {
  struct memory_bytes *bytes = &program->figures.bytes;
  program->library.workspace = workspace_of(program);
  program->kernels.sums = sums_of(program);
  bytes->weights = weight_bytes(program);
  bytes->cache = cache_bytes(program);
  bytes->gradients = gradient_bytes(program);
  count_states(program, bytes);
  if (mirrored(program)) bytes->host += streamed_bytes(program, false) + STREAM_PIECES * largest_read(program);
  bytes->checkpoint = mirrored(program) ? 0 : state_copy_bytes(program);
  const struct function *forward = program->entry.forward; /* NULL: the compiler of a module finds what is kept */
  bytes->activations = forward != NULL ? micro_batches_held(program) * forward->saved_bytes : 0;
  bytes->scratch = scratch_bytes(program);
  bytes->batch = sample_bytes(program) + passing_bytes(program) + report_bytes(program);
  bytes->total = bytes->weights + bytes->cache + bytes->gradients + bytes->optimizer + bytes->averages +
                 bytes->checkpoint + bytes->activations + bytes->scratch + bytes->batch;
}
