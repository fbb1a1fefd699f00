#include "gen/plan/ranks/tree.h"

#include "gen/base/quantity.h"
#include "gen/plan/ranks/collectives.h"
#include "gen/plan/ranks/fsdp_layers.h"
#include "gen/plan/ranks/sequence.h"
#include "gen/plan/ranks/shard.h"
#include "gen/plan/ranks/sharing.h"
#include "gen/program/sharding.h"
#include "gen/program/storage.h"
#include "gen/program/target.h"
#include "gen/program/weights.h"

static int levels_of(int64_t leaves) {
  int levels = 0;
  while (leaves >> (levels + 1) > 0) levels++;
  return levels;
}

static bool check_count(const struct program *program, int64_t leaves, struct diagnostics *diags) {
  const struct job *job = program->job;
  if ((leaves & (leaves - 1)) == 0) return true;
  diag_error(
      diags, job_where(job, "parallelism.reproducible"),
      "the %lld micro-batches of a step, ranks times accumulation.num_steps, are no power of two, so no order of "
      "adding them is the same for every division among ranks",
      (long long)leaves);
  diag_note(diags, job_where(job, "accumulation.num_steps"), "%d on each of %lld ranks by this",
            job->accumulation.num_steps, (long long)job->devices.ranks);
  diag_help(diags, "let num_steps times the ranks be %lld, or set parallelism.reproducible: run",
            1LL << (levels_of(leaves) + 1));
  return false;
}

/* Running statistics move from micro-batch to micro-batch, on each rank by its own. */
static bool check_buffers(const struct program *program, struct diagnostics *diags) {
  for (int i = 0; i < program->weights->count; i++) {
    if (!program->weights->items[i].parameter->buffer) continue;
    diag_error(diags, job_where(program->job, "parallelism.reproducible"),
               "'%s' moves with each micro-batch of a rank, so it depends on which of them the rank has",
               program->weights->items[i].path);
    diag_help(diags, "take a model without running statistics, or parallelism.reproducible: run");
    return false;
  }
  return true;
}

/* Elements that rank 0 gives to others, halving what it has with those that are ranks / 2, ranks / 4, ... 1 away, and
 * on the way back. */
static int64_t given_by_halves(int64_t ranks, int64_t count) {
  int64_t given = 0;
  for (; ranks > 1; ranks /= 2) {
    given += count; /* one half there, the other back */
    count /= 2;
  }
  return given;
}

/* `count`: elements that a rank gives. */
static void add(struct program *program, enum axis axis, const char *what, int64_t count, int64_t width) {
  struct collective collective = {
      .kind = COLLECTIVE_TREE_ALL_REDUCE, .axis = axis, .what = what, .width = width, .count = count, .times = 1};
  ARENA_PUSH(program->arena, program->ranks.collectives, collective);
}

void tree_losses(struct program *program) {
  const char *what = program->step_end.counts ? "the loss, and what it is a mean over" : "the loss";
  int64_t numbers = program->step_end.counts ? 2 : 1;
  for (int i = 0; i < program->mesh.batches.count; i++) {
    const enum axis axis = program->mesh.batches.items[i];
    add(program, axis, what, numbers * levels_of(ranks_along(program, axis)), (int64_t)sizeof(double));
  }
}

static void add_gradients(struct program *program) {
  for (int i = 0; i < program->mesh.batches.count; i++) {
    const enum axis axis = program->mesh.batches.items[i];
    add(program, axis, "gradients of all parameters",
        given_by_halves(ranks_along(program, axis), program->ranks.tree.gradients), dtype_size(DTYPE_FLOAT32));
  }
}

int tree_sums(const struct program *program) {
  const int count = program->mesh.batches.count;
  return count > 1 && job_has_tree(program->job) ? count : 1;
}

int tree_bucket(const struct program *program, int bucket, struct collective *list) {
  const struct collective *whole = &program->ranks.collectives.items[bucket];
  const struct axes *axes = &program->mesh.batches;
  for (int i = 0; i < axes->count; i++) {
    list[i] = *whole;
    list[i].kind = COLLECTIVE_TREE_ALL_REDUCE;
    list[i].axis = axes->items[i];
    list[i].length = whole->count;
    list[i].count = given_by_halves(ranks_along(program, axes->items[i]), whole->count);
    if (axes->items[i] != program->mesh.shards) continue;
    list[i] = shard_scattered_by_tree(program, &program->optimizer.flat_ranges.items[bucket], whole->what);
    list[i].after = whole->after;
    list[i].iteration = whole->iteration;
  }
  return axes->count;
}

/* Elements that a rank takes from another at most of a flat range: of a half of all, or of a half of the shards. */
static int64_t buffer_of_halves(const struct program *program, const struct flat_range *range) {
  int64_t ranks = ranks_along(program, program->mesh.shards), half = (range->end - range->first + 1) / 2;
  int64_t shards = (ranks / 2 - 1) * range->shard_size + shard_last(program, range);
  return half > shards ? half : shards;
}

static int64_t whole_lines(int64_t elements) {
  return arena_aligned(elements * dtype_size(DTYPE_FLOAT32)) / dtype_size(DTYPE_FLOAT32);
}

/* Elements of `count`, divided evenly, that ranks send to the last one of them, which has the remainder. */
static int64_t gathered_shards(int64_t count, int64_t ranks) {
  return ranks > 1 ? ranks * (count - count / ranks * (ranks - 1)) : 0;
}

/* Elements that a rank gathers of all along an axis at most, of a bucket; where states are split, of its flat range. */
static int64_t buffer_of_gathered(const struct program *program, int64_t count, const struct flat_range *range) {
  int64_t most = 0;
  for (int i = 0; i < program->mesh.batches.count; i++) {
    const enum axis axis = program->mesh.batches.items[i];
    const int64_t ranks = ranks_along(program, axis);
    const int64_t buffer =
        axis == program->mesh.shards ? ranks * shard_last(program, range) : gathered_shards(count, ranks);
    if (buffer > most) most = buffer;
  }
  return most;
}

/* What one bucket takes at a time, the largest. */
static int64_t exchange_buffer(const struct program *program) {
  const bool gathers = program->target->ranks.gathers_sums;
  int64_t most = 0;
  for (int i = 0; i < program->optimizer.flat_ranges.count && is_sharded(program); i++) {
    const struct flat_range *range = &program->optimizer.flat_ranges.items[i];
    const int64_t count = range->end - range->first;
    int64_t buffer = gathers ? buffer_of_gathered(program, count, range) : buffer_of_halves(program, range);
    if (buffer > most) most = buffer;
  }
  for (int i = 0; i < program->ranks.collectives.count && !is_sharded(program); i++) {
    const int64_t count = program->ranks.collectives.items[i].length;
    int64_t buffer = gathers ? buffer_of_gathered(program, count, NULL) : (count + 1) / 2;
    if (buffer > most) most = buffer;
  }
  return most;
}

/* Gradients leave each rank as the backward completes them. */
static void plan_buckets(struct program *program) {
  program->ranks.tree.by_buckets = true;
  plan_collectives(program);
  program->ranks.tree.buffer = whole_lines(exchange_buffer(program));
}

/* A buffer for the shards of all ranks along an axis, and for losses: those of a level's first half, or of all ranks.
 */
static void widen_buffer(struct program *program) {
  struct tree *tree = &program->ranks.tree;
  tree->losses = 2 * (int64_t)tree->levels;
  for (int i = 0; i < program->mesh.batches.count; i++) {
    int64_t ranks = ranks_along(program, program->mesh.batches.items[i]);
    int64_t shards = gathered_shards(tree->gradients, ranks);
    if (shards > tree->buffer) tree->buffer = shards;
    if (2 * ranks > tree->losses) tree->losses = 2 * ranks;
  }
}

bool plan_tree(struct program *program, struct diagnostics *diags) {
  const struct job *job = program->job;
  int64_t ranks = job_data_ranks(job), own = job->accumulation.num_steps;
  if (program->entry.backward == NULL) return true;
  if (!check_count(program, ranks * own, diags)) return false;
  if (ranks * own > 1 && !check_buffers(program, diags)) return false;
  int64_t gradients = weights_type(program->gradients)->bytes / dtype_size(DTYPE_FLOAT32);
  struct tree *tree = &program->ranks.tree;
  *tree = (struct tree){.leaves = ranks * own, .levels = levels_of(own), .gradients = gradients};
  tree->buffer = tree->levels * gradients; /* whole lines, as gradients are */
  program->ranks.sends_always = true;      /* all of them, and none on the way */
  if (program->target->ranks.gathers_sums) widen_buffer(program);
  if (ranks == 1) return true;
  if (own == 1) {
    plan_buckets(program);
    return true;
  }
  add_gradients(program);
  tree_losses(program);
  if (!is_sharded(program)) return true;
  shard_all(program);
  plan_gathers(program);
  shard_gather(program);
  sequence_collectives(program);
  return true;
}

const char *tree_text(const struct program *program) {
  const struct tree *tree = &program->ranks.tree;
  struct arena *arena = program->arena;
  if (tree->leaves <= 1) return "";
  int64_t own = (int64_t)1 << tree->levels, width = dtype_size(DTYPE_FLOAT32);
  const char *buffer = bytes_text(arena, arena_aligned(tree->buffer * width));
  const char *exchanged = own == tree->leaves ? ""
                          : tree->by_buckets  ? ", exchanged as the backward completes them"
                                              : ", exchanged after the backward";
  const char *sums = "";
  if (own > 1)
    sums = arena_printf(arena, ", %lld additions and copies of %s a step", (long long)own - 1,
                        bytes_text(arena, tree->gradients * width));
  const char *whole = "";
  if (program->mesh.axes[program->mesh.shards].gradients == PLACED_SPLIT && !tree->by_buckets)
    whole = arena_printf(arena, "whole     %s of gradients on each rank, until they are added up\n",
                         bytes_text(arena, tree->gradients * width));
  return arena_printf(arena,
                      "order     one for all divisions of %lld micro-batches%s\nsums      %s of partial ones%s\n%s",
                      (long long)tree->leaves, exchanged, buffer, sums, whole);
}
