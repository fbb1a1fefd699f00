#include "gen/plan/ranks/collectives.h"

#include <stdlib.h>

#include "gen/plan/memory/completion.h"
#include "gen/plan/ranks/fsdp_layers.h"
#include "gen/plan/ranks/sequence.h"
#include "gen/plan/ranks/shard.h"
#include "gen/plan/ranks/tree.h"
#include "gen/program/fp8.h"
#include "gen/program/precision.h"
#include "gen/program/sending.h"
#include "gen/program/sharding.h"
#include "gen/program/storage.h"
#include "gen/program/weights.h"

/* PyTorch's DistributedDataParallel sends its first bucket when it has so much, so that traffic begins early. */
enum { FIRST_BUCKET_BYTES = 1 << 20 };

/* ---- Buckets ---- */

/* A parameter's gradient, whole. */
struct gradient {
  const struct weight *weight;
  int64_t first, end; /* elements, with what pads it */
  int ready;
};

/* As the backward completes them; of those that it completes at once, from the end of memory on, as the backward goes
 * through a model from its end. */
static int compare(const void *a, const void *b) {
  const struct gradient *p = a, *q = b;
  if (p->ready != q->ready) return p->ready < q->ready ? -1 : 1;
  return p->first > q->first ? -1 : p->first < q->first;
}

/* What no gradient reaches, but ranks divide the update of, is complete with its layer, whose ranges are neighbours, if
 * that is held alone, and else with the parameter before it. */
static void complete_unreached(const struct program *program, int *ready) {
  for (int i = 0; i < program->weights->count && is_sharded(program); i++) {
    const int unit = fsdp_unit_of(program, &program->weights->items[i]);
    if (!program->weights->items[i].unreached) continue;
    ready[i] = unit < 0 && i > 0 && ready[i - 1] > 0 ? ready[i - 1] : 1;
    for (int k = 0; k < program->weights->count && unit >= 0; k++)
      if (fsdp_unit_of(program, &program->weights->items[k]) == unit && ready[k] > ready[i]) ready[i] = ready[k];
  }
}

static struct gradient *gradients_of(const struct program *program, const int *ready, int *count) {
  struct gradient *gradients = arena_alloc(program->arena, ((size_t)program->weights->count + 1) * sizeof *gradients);
  int64_t size = dtype_size(DTYPE_FLOAT32);
  *count = 0;
  for (int i = 0; i < program->weights->count; i++) {
    const struct weight *weight = &program->weights->items[i];
    if (ready[i] == 0 || weight->gradient < 0) continue;               /* zeros on all ranks, or none */
    if (summed_along(program, weight->parameter).count == 0) continue; /* of one rank */
    int64_t end = weight->gradient + arena_aligned(shape_count(weight->parameter->shape) * size);
    gradients[(*count)++] = (struct gradient){weight, weight->gradient / size, end / size, ready[i]};
  }
  qsort(gradients, (size_t)*count, sizeof *gradients, compare);
  return gradients;
}

/* Extends a bucket by a gradient that is next to it. */
static bool grow_bucket(struct collective *bucket, const struct gradient *gradient, int64_t most) {
  int64_t length = gradient->end - gradient->first;
  bool before = gradient->end == bucket->first, after = gradient->first == bucket->first + bucket->count;
  if ((!before && !after) || bucket->count + length > most) return false;
  if (before) bucket->first = gradient->first;
  bucket->count += length;
  return true;
}

static const char *bucket_text(struct arena *arena, const struct weight *weight, int others) {
  if (others == 0) return arena_printf(arena, "gradient of %s", weight->path);
  return arena_printf(arena, "gradients of %s and %d more", weight->path, others);
}

int64_t wire_width(const struct job *job) {
  return dtype_size(precision_dtype(job->parallelism.wire));
}

/* Whether each micro-batch sends its gradients. */
static bool sends_each(const struct program *program) {
  return program->job->parallelism.sync_each_batch || gradients_are_split(program);
}

enum collective_kind summing_collective(const struct program *program, enum axis axis) {
  return program->mesh.axes[axis].states == PLACED_SPLIT ? COLLECTIVE_REDUCE_SCATTER : COLLECTIVE_ALL_REDUCE;
}

/* Makes the gradient the first one of a bucket. */
static void begin_bucket(struct program *program, const struct gradient *gradient) {
  const struct job *job = program->job;
  const struct axes axes = summed_along(program, gradient->weight->parameter);
  struct collective bucket = {.kind = summing_collective(program, axes.items[0]),
                              .axis = axes.items[0],
                              .then = axes_after_first(axes),
                              .width = wire_width(job),
                              .first = gradient->first,
                              .count = gradient->end - gradient->first,
                              .times = sends_each(program) ? job->accumulation.num_steps : 1};
  ARENA_PUSH(program->arena, program->ranks.collectives, bucket);
  if (is_sharded(program)) shard_begin(program, gradient->weight);
}

/* Adds the gradient to the last bucket. False if it is not adjacent to it or the bucket is full. */
static bool extend_bucket(struct program *program, const struct gradient *gradient) {
  int n = program->ranks.collectives.count;
  int64_t most = program->job->parallelism.bucket_bytes;
  if (n == 1 && most > FIRST_BUCKET_BYTES) most = FIRST_BUCKET_BYTES;
  if (n == 0) return false;
  bool sharded = is_sharded(program);
  if (sharded && !shard_accepts(program, gradient->weight)) return false;
  const struct axes axes = summed_along(program, gradient->weight->parameter);
  if (!axes_equal(program->ranks.collectives.items[n - 1].then, axes_after_first(axes))) return false;
  if (!grow_bucket(&program->ranks.collectives.items[n - 1], gradient, most / dtype_size(DTYPE_FLOAT32))) return false;
  if (sharded) shard_extend(program, gradient->weight);
  return true;
}

/* Buckets from gradients in order, and by bucket the point after which it is complete. */
static int *add_buckets(struct program *program, const struct completion *order, const struct gradient *gradients,
                        int count) {
  int *ready = arena_alloc(program->arena, ((size_t)count + 1) * sizeof *ready);
  if (is_sharded(program)) program->optimizer.flat_ranges = (struct flat_range_list){0};
  for (int i = 0, others = 0; i < count; i++) {
    const struct gradient *gradient = &gradients[i];
    others = extend_bucket(program, gradient) ? others + 1 : 0;
    if (others == 0) begin_bucket(program, gradient);
    int n = program->ranks.collectives.count;
    struct collective *last = &program->ranks.collectives.items[n - 1];
    last->what = bucket_text(program->arena, gradients[i - others].weight, others);
    last->after = order->points.items[gradient->ready - 1].step;
    last->iteration = order->points.items[gradient->ready - 1].iteration;
    ready[n - 1] = gradient->ready;
  }
  program->ranks.n_buckets = program->ranks.collectives.count;
  if (program->ranks.n_buckets > 0 && program->job->parallelism.wire != PRECISION_NO)
    program->ranks.wire = all_gradients(program);
  if (is_sharded(program)) shard_cut(program);
  return ready;
}

/* ---- What the loss is the sum of ---- */

void add_sum(struct program *program, enum axis axis, const char *what, int64_t count, int64_t width) {
  struct collective sum = {
      .kind = COLLECTIVE_ALL_REDUCE, .axis = axis, .what = what, .width = width, .count = count, .times = 1};
  ARENA_PUSH(program->arena, program->ranks.collectives, sum);
}

void add_scales(struct program *program) {
  const int64_t count = fp8_scales(program), rounded = job_sends_fp8(program->job) ? fp8_rounded_weights(program) : 0;
  const struct axes axes = fp8_axes(program);
  for (int i = 0; i < axes.count && count > 0; i++) {
    add_sum(program, axes.items[i], "the largest sizes of tensors in 8 bits", count, (int64_t)sizeof(double));
    program->ranks.collectives.items[program->ranks.collectives.count - 1].times = program->job->accumulation.num_steps;
    if (rounded > 0)
      add_sum(program, axes.items[i], "the largest sizes of gradients in 8 bits", rounded, (int64_t)sizeof(double));
  }
}

void add_loss(struct program *program) {
  const bool counts = program->step_end.counts;
  const char *what = counts ? "the loss, and what it is a mean over" : "the loss";
  const enum axis layers = axis_sharding(program, SHARDED_LAYERS);
  if (layers != AXES) add_sum(program, layers, what, counts ? 2 : 1, (int64_t)sizeof(double));
  for (int i = 0; i < program->mesh.batches.count; i++)
    add_sum(program, program->mesh.batches.items[i], what, counts ? 2 : 1, (int64_t)sizeof(double));
}

/* Adds the buckets of the gradients in the order in which the backward makes them, which it fills. Returns what
 * add_buckets does. */
static int *add_ordered_buckets(struct program *program, struct completion *order) {
  find_completion(program, order);
  int count;
  complete_unreached(program, order->ready);
  const struct gradient *gradients = gradients_of(program, order->ready, &count);
  return add_buckets(program, order, gradients, count);
}

/* Gradients, and what the loss is the sum of, over ranks that have batches of their own. */
static void add_of_batches(struct program *program) {
  struct completion order;
  const int *ready = add_ordered_buckets(program, &order);
  mark_completion(&order, ready, program->ranks.n_buckets);
  program->ranks.sends_always =
      program->job->accumulation.num_steps == 1 || (sends_each(program) && !shard_sends_otherwise(program));
  if (job_has_tree(program->job))
    tree_losses(program);
  else
    add_loss(program);
  add_scales(program);
}

/* Gradients of batches that user code exchanges after the backward, bucket after bucket. What it sends of one is its
 * own affair: a sum of all of it is assumed. */
static void add_of_hook(struct program *program) {
  struct compression *compression = &program->ranks.compression;
  struct completion order;
  add_ordered_buckets(program, &order);
  for (int i = 0; i < program->ranks.n_buckets; i++) {
    struct collective *bucket = &program->ranks.collectives.items[i];
    bucket->what =
        arena_printf(program->arena, "%s, as %s sends them", bucket->what, program->job->hooks.names[HOOK_BUCKET]);
    bucket->after = NULL;
    const struct sent_range range = {.what = bucket->what, .first = bucket->first, .count = bucket->count};
    ARENA_PUSH(program->arena, compression->whole, range);
  }
  compression->gradients = compression->elements = all_gradients(program);
  program->ranks.n_buckets = 0; /* none begins within the backward */
  program->ranks.sends_always = true;
  add_loss(program);
}

void add_norm(struct program *program) {
  const struct program_mesh *mesh = &program->mesh;
  const bool largest = program->job->optimizer.norm_type == NORM_INF,
             shards_alone = mesh->norms.count == is_sharded(program);
  const char *what = largest ? "the gradient's largest element" : "the gradient's norm";
  const int64_t count = largest || (shards_alone && !job_has_tree(program->job)) ? 1 : TREE_SQUARES;
  for (int i = 0; i < mesh->norms.count; i++)
    add_sum(program, mesh->norms.items[i], what, count, (int64_t)sizeof(double));
}

/* Gradients of which each rank that divides tensors has a part of the sum, in one collective. */
static void add_partial_gradients(struct program *program) {
  const int64_t size = dtype_size(DTYPE_FLOAT32);
  int parameters = 0;
  for (int i = 0; i < program->weights->count; i++) {
    const struct weight *weight = &program->weights->items[i];
    if (!weight->parameter->partial_gradient || weight->gradient < 0) continue;
    parameters++;
    program->ranks.partial_gradients += arena_aligned(shape_count(weight->parameter->shape) * size) / size;
  }
  if (parameters == 0) return;
  add_sum(program, axis_sharding(program, SHARDED_TENSORS),
          arena_printf(program->arena, "partial gradients of %d parameters", parameters),
          program->ranks.partial_gradients, size);
}

void plan_collectives(struct program *program) {
  const struct job *job = program->job;
  const bool trains = program->kind == PROGRAM_TRAIN;
  if (job->devices.ranks <= 1 || (trains && program->entry.backward == NULL)) return;
  if (trains && job->parallelism.by_hook)
    add_of_hook(program);
  else if (trains && job_adding_ranks(job) > 1)
    add_of_batches(program);
  if (trains) add_partial_gradients(program);
  if (trains) add_norm(program);
  if (is_sharded(program)) {
    plan_gathers(program);
    shard_gather(program);
  }
  sequence_collectives(program);
}

int64_t collective_bytes(const struct collective *collective) {
  return collective->times * collective->count * collective->width;
}

const char *collective_name(enum collective_kind kind) {
  static const char *const names[] = {"all-reduce",      "reduce-scatter",      "all-gather", "all-to-all",
                                      "tree all-reduce", "tree reduce-scatter", "send"};
  return names[kind];
}
