#include "gen/plan/ranks/stage_traffic.h"

#include "gen/plan/ranks/collectives.h"
#include "gen/plan/ranks/compress.h"
#include "gen/plan/ranks/sequence.h"
#include "gen/plan/ranks/shard.h"
#include "gen/plan/ranks/stage_bytes.h"
#include "gen/program/sending.h"
#include "gen/program/sharding.h"
#include "gen/program/stage_parameters.h"
#include "gen/program/storage.h"

static void add(struct program *program, enum collective_kind kind, enum axis axis, const char *what, int64_t count,
                int64_t width, int64_t times) {
  struct collective collective = {
      .kind = kind, .axis = axis, .what = what, .width = width, .count = count, .times = times};
  if (count > 0) ARENA_PUSH(program->arena, program->ranks.collectives, collective);
}

static void add_send(struct program *program, const char *what, int64_t count, int64_t width, int64_t times) {
  add(program, COLLECTIVE_SEND, axis_sharding(program, SHARDED_LAYERS), what, count, width, times);
}

static int64_t micro_batches(const struct program *program) {
  return program->kind == PROGRAM_TRAIN ? program->job->accumulation.num_steps : 1;
}

/* ---- Values that cross ---- */

/* Whether a function has a part in what the program does over and over: an evaluation within training has none. */
static bool is_repeated(const struct program *program, const struct function *function) {
  if (program->kind == PROGRAM_TRAIN) return function->forward != NULL || function->backward != NULL;
  for (int i = 0; i < repeated_entry(program)->n_steps; i++)
    if (repeated_entry(program)->steps[i].callee == function) return true;
  return function == repeated_entry(program);
}

/* The one like it that was added last; NULL: there is none. Several stages of a rank give alike values. */
static struct collective *like(const struct program *program, const char *what, int64_t count, int64_t width) {
  for (int i = 0; i < program->ranks.collectives.count; i++) {
    struct collective *known = &program->ranks.collectives.items[i];
    if (known->what == what && known->count == count && known->width == width) return known;
  }
  return NULL;
}

/* What its stages give to the stages before and after them. */
static void add_crossings(struct program *program, int rank) {
  static const char *const whats[] = {"its gradients, of the stage before", "what the next stage takes"};
  const struct pipeline *pipeline = &program->ranks.pipeline;
  for (int i = 0; i < pipeline->crossings.count; i++) {
    const struct crossing *crossing = &pipeline->crossings.items[i];
    const char *what = whats[crossing->from < crossing->to];
    const int64_t width = dtype_size(crossing->storage->dtype);
    if (crossing->from % pipeline->ranks != rank || !is_repeated(program, crossing->function)) continue;
    struct collective *known = like(program, what, crossing->count, width);
    if (known != NULL)
      known->times += micro_batches(program);
    else
      add_send(program, what, crossing->count, width, micro_batches(program));
  }
}

/* ---- Exchanges of kernels ---- */

/* What the kernels of a stage exchange with ranks that divide its tensors, in order. */
static void list_exchanges(const struct program *program, const struct function *function, int stage,
                           struct collective_list *list) {
  for (int i = 0; i < function->n_steps; i++) {
    const struct step *step = &function->steps[i];
    if (function->staged && (step->stages >> stage & 1) == 0) continue;
    list_kernel_exchanges(program, step, list);
    for (int k = 0; step->callee != NULL && k < step->node->call->count; k++)
      list_exchanges(program, step->callee, stage, list);
  }
}

static void add_exchanges(struct program *program, int rank) {
  const struct pipeline *pipeline = &program->ranks.pipeline;
  struct collective_list *list = &program->ranks.collectives;
  for (int s = rank; s < pipeline->stages; s += pipeline->ranks) {
    list_exchanges(program, repeated_entry(program), s, list);
    if (program->entry.backward != NULL) list_exchanges(program, program->entry.backward, s, list);
    if (program->entry.deferred != NULL) list_exchanges(program, program->entry.deferred, s, list);
  }
}

/* ---- Gradients and weights ---- */

/* Elements of a weight's gradient, with what pads it. */
static int64_t padded_elements(const struct weight *weight) {
  const int64_t size = dtype_size(DTYPE_FLOAT32);
  return arena_aligned(shape_count(weight->parameter->shape) * size) / size;
}

/* What a rank sends of a gradient that stages of several ranks add to: where ranks shard it, its shard. */
static int64_t shared_elements(const struct program *program, const struct weight *weight) {
  for (int i = 0; i < program->optimizer.flat_ranges.count && is_sharded(program); i++) {
    const struct flat_range *range = &program->optimizer.flat_ranges.items[i];
    if (range->weight == weight) return shard_last(program, range);
  }
  return padded_elements(weight);
}

/* Ranks before `end` that use a weight. */
static int users(const struct pipeline *pipeline, const struct weight *weight, int end) {
  int count = 0;
  for (int k = 0; k < end; k++) count += rank_uses(pipeline, k, weight->path);
  return count;
}

/* Gradients of what stages of several ranks use: the first and the last of these give them once, others three times. */
static void add_shared(struct program *program, int rank) {
  const struct pipeline *pipeline = &program->ranks.pipeline;
  for (int i = 0; i < program->weights->count; i++) {
    const struct weight *weight = &program->weights->items[i];
    const int all = users(pipeline, weight, pipeline->ranks), before = users(pipeline, weight, rank);
    if (all < 2 || weight->gradient < 0 || !rank_uses(pipeline, rank, weight->path)) continue;
    const char *number = all == 2 ? "two" : arena_printf(program->arena, "%d", all);
    add_send(program, arena_printf(program->arena, "gradients of %s, of %s stages", weight->path, number),
             shared_elements(program, weight), dtype_size(DTYPE_FLOAT32), before == 0 || before == all - 1 ? 1 : 3);
  }
}

/* Of gradients of a rank's stages of which each rank along tp has a part of the sum. */
static int64_t partial_elements(const struct program *program, int rank) {
  int64_t count = 0;
  for (int i = 0; i < program->weights->count; i++) {
    const struct weight *weight = &program->weights->items[i];
    const bool partial = weight->parameter->partial_gradient && weight->gradient >= 0;
    if (partial && rank_uses(&program->ranks.pipeline, rank, weight->path)) count += padded_elements(weight);
  }
  return count;
}

static void add_partial(struct program *program, int rank) {
  const int64_t count = partial_elements(program, rank);
  if (count > program->ranks.partial_gradients) program->ranks.partial_gradients = count;
  add(program, COLLECTIVE_ALL_REDUCE, axis_sharding(program, SHARDED_TENSORS), "partial gradients of its stages", count,
      dtype_size(DTYPE_FLOAT32), 1);
}

/* The sum of gradients of which each rank stores a shard: of layers of which a stage has a few at a time with each
 * micro-batch, and with what it defers again, of all else once. */
static void add_scattered(struct program *program, int rank, enum axis axis, const char *what) {
  const struct shard_elements of = shard_elements(program, rank);
  const int64_t width = wire_width(program->job);
  add(program, COLLECTIVE_REDUCE_SCATTER, axis, "gradients of layers of its stages", of.units, width,
      program->job->accumulation.num_steps * (program->ranks.pipeline.schedule.defers ? 2 : 1));
  add(program, COLLECTIVE_REDUCE_SCATTER, axis, of.units > 0 ? "its other gradients" : what, of.others, width, 1);
}

/* Gradients of a rank's stages, over the ranks that have batches of their own. Those that several stages add to are
 * added up before, or each rank's parts of them after. */
static void add_gradients(struct program *program, int rank) {
  const struct axes axes = summed_along(program, NULL);
  const char *what = "gradients of its stages";
  bool scattered = false;
  if (!is_sharded(program)) add_shared(program, rank);
  if (program->job->parallelism.power_sgd.on) add_compressed(program, rank);
  if (program->job->parallelism.power_sgd.on) return;
  for (int i = 0; i < axes.count; i++) {
    const enum axis axis = axes.items[i];
    const enum collective_kind kind = summing_collective(program, axis);
    if (kind != COLLECTIVE_REDUCE_SCATTER) {
      add(program, kind, axis, what,
          scattered ? stage_own_elements(program, rank, axis) : stage_summed_elements(program, rank, axis),
          wire_width(program->job), 1);
      continue;
    }
    add_scattered(program, rank, axis, what);
    what = "each rank's part of them";
    scattered = true;
  }
  if (is_sharded(program)) add_shared(program, rank);
}

/* Weights of which a rank has a part each: of layers of which a stage has a few at a time before each use, a stage's
 * first one too, as others may have been where it was; all else after the update. */
static void add_weights(struct program *program, int rank) {
  const struct shard_elements of = shard_elements(program, rank);
  const bool split = weights_are_split(program);
  const int64_t width = dtype_size(DTYPE_FLOAT32);
  if (split)
    add(program, COLLECTIVE_ALL_GATHER, program->mesh.shards, "weights of layers of its stages", of.units, width,
        2 * program->job->accumulation.num_steps);
  add(program, COLLECTIVE_ALL_GATHER, program->mesh.shards, split ? "its other weights" : "weights of its stages",
      split ? of.others : of.units + of.others, width, 1);
}

/* ---- Of each rank ---- */

static void add_collectives(struct program *program, int rank) {
  add_crossings(program, rank);
  add_exchanges(program, rank);
  if (program->kind == PROGRAM_GENERATE && rank == program->ranks.pipeline.ranks - 1) {
    const struct shape logits = program->graph->entry->results.items[0]->shape;
    add_send(program, "logits of the last stage", logits.dim[logits.rank - 1], dtype_size(DTYPE_FLOAT32), 1);
  }
  if (program->kind != PROGRAM_TRAIN) return;
  add_gradients(program, rank);
  add_loss(program);
  add_partial(program, rank);
  add_norm(program);
  if (is_sharded(program)) add_weights(program, rank);
}

static int64_t list_bytes(const struct collective_list *list, enum axis axis) {
  int64_t bytes = 0;
  for (int i = 0; i < list->count; i++)
    if (axis == AXES || list->items[i].axis == axis) bytes += collective_bytes(&list->items[i]);
  return bytes;
}

void plan_stage_traffic(struct program *program) {
  struct pipeline *pipeline = &program->ranks.pipeline;
  pipeline->collectives = arena_alloc(program->arena, (size_t)pipeline->ranks * sizeof *pipeline->collectives);
  plan_stage_compression(program);
  for (int k = 0; k < pipeline->ranks; k++) {
    program->ranks.collectives = (struct collective_list){0};
    add_collectives(program, k);
    pipeline->collectives[k] = program->ranks.collectives;
    const struct collective_list *most = &pipeline->collectives[pipeline->busiest];
    if (list_bytes(&pipeline->collectives[k], AXES) > list_bytes(most, AXES)) pipeline->busiest = k;
  }
  program->ranks.collectives = pipeline->collectives[pipeline->busiest];
  if (program->kind != PROGRAM_TRAIN) return;
  program->ranks.sends_always = true; /* gradients are added up after the backward */
  if (program->job->parallelism.wire != PRECISION_NO && program->ranks.wire == 0)
    program->ranks.wire = all_gradients(program);
}

int64_t stage_sent_bytes(const struct program *program, int rank) {
  return list_bytes(&program->ranks.pipeline.collectives[rank], axis_sharding(program, SHARDED_LAYERS));
}
