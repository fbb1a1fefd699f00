#include "gen/plan/disk.h"

#include <stdlib.h>
#include <string.h>

#include "gen/plan/disk_pieces.h"
#include "gen/plan/memory/completion.h"
#include "gen/program/optimizers.h"
#include "gen/program/sharding.h"
#include "gen/program/state.h"
#include "gen/program/storage.h"
#include "gen/program/weights.h"

/* A state of fewer than FEW buckets of MOST is divided into FEW, so that there is something to overlap. */
enum { UNIT = DISK_UNIT, MOST = DISK_MOST, FEW = 16 };

/* How many buckets are in memory at least. Those of a layer all are where that is a small part, one in SHARE, of the
 * weights and gradients: each has come while the backward was at the layer. */
enum { LEAST_SLOTS = 4, SHARE = 16 };

/* Why a job's states cannot be on a disk, and what could be instead; NULL: they can. */
struct obstacle {
  const char *key, *why, *help;
};

/* Ranks with the same weights each have all states, which they update by the same gradients. */
static struct obstacle find_obstacle_of_ranks(const struct program *program) {
  const struct job *job = program->job;
  if (job_batch_ranks(job) < job->devices.ranks)
    return (struct obstacle){"devices.per_node", "ranks that divide the model keep their states in memory",
                             "let all ranks have batches of their own, or use one process"};
  if (is_sharded(program))
    return (struct obstacle){"devices.per_node", "ranks that divide states keep them in memory",
                             "set parallelism.zero_stage: 0, with which each rank has all states on a disk"};
  if (job->parallelism.local_steps > 0)
    return (struct obstacle){"parallelism.local_sgd_steps", "ranks that step alone keep their states in memory",
                             "leave it out: ranks that add up gradients in each step can have them on a disk"};
  if (job->parallelism.power_sgd.on)
    return (struct obstacle){"parallelism.ddp.comm_hook", "ranks that send factors keep their states in memory",
                             "use comm_hook: bf16, or none"};
  if (job->parallelism.by_hook)
    return (struct obstacle){"hooks.on_bucket", "ranks whose gradients user code sends keep their states in memory",
                             "leave it out: ranks that add up gradients in each step can have them on a disk"};
  return (struct obstacle){0};
}

static struct obstacle find_obstacle(const struct program *program) {
  const struct job *job = program->job;
  const struct optimizer *rule = job_optimizer(job);
  const struct obstacle of_ranks = find_obstacle_of_ranks(program);
  if (of_ranks.key != NULL) return of_ranks;
  if (rule->averages)
    return (struct obstacle){"optimizer.name", "the model is made of a state", "use optimizer.name: adamw"};
  if (rule->in_backward)
    return (struct obstacle){"optimizer.name", "weights are updated within the backward", "use optimizer.name: adamw"};
  if (rule->reach != BY_ELEMENT)
    return (struct obstacle){"optimizer.name", "it steps parameters as a whole, and buckets cut them",
                             "use an optimizer that steps each weight by itself, such as adamw"};
  if (optimizer_states(job) == 0)
    return (struct obstacle){"optimizer.name", "it stores nothing for each weight", "leave out parallelism.offload"};
  if (optimizer_state_dtype(job) != STATE_FLOAT32)
    return (struct obstacle){"optimizer.state_dtype", "states on a disk are stored in float32",
                             "leave out optimizer.state_dtype"};
  return (struct obstacle){0};
}

static bool is_of_optimizer(const struct state *state) {
  return strcmp(state->file, "optimizer") == 0;
}

/* All states have as many elements, in the same positions; of layers on the disk the pieces are divided already. */
static void divide(struct program *program) {
  struct program_disk *disk = &program->disk;
  const int64_t buckets = disk->buckets;
  for (int i = 0; i < program->states.count; i++) {
    struct state *state = &program->states.items[i];
    if (!is_of_optimizer(state)) continue;
    if (disk->n_states++ == 0) disk->first_state = i;
    state->on_disk = true;
    if (buckets == 0) disk->elements = state->count;
  }
  disk->slots = LEAST_SLOTS < buckets ? LEAST_SLOTS : buckets;
  if (buckets > 0) return;
  const int64_t units = (disk->elements + UNIT - 1) / UNIT, most = (disk->elements + MOST - 1) / MOST;
  const int64_t wanted = most > FEW ? most : units < FEW ? units : FEW;
  disk->bucket = (units + wanted - 1) / wanted * UNIT;
  disk->buckets = (disk->elements + disk->bucket - 1) / disk->bucket;
  disk->slots = LEAST_SLOTS < disk->buckets ? LEAST_SLOTS : disk->buckets;
}

/* ---- Updates within the backward ---- */

/* Whether a gradient's elements on this rank are all that its update reads, and whether there is an update is known
 * before. The noise scale takes a step's first micro-batch by itself, which may be the only one and so the last. */
static bool can_update_in_backward(const struct program *program) {
  return !program->step_end.factor && !program->step_end.skips && !job_has_tree(program->job) &&
         !program->job->tracking.noise_scale && program->job->devices.ranks == 1;
}

/* The bucket whose turn is number `turn`. The backward goes through a model from its end. */
static int64_t bucket_of(const struct program *program, int64_t turn) {
  return program->disk.buckets - 1 - turn;
}

/* By turn, the points of the backward after which it can be taken: that of a bucket, and all before it. */
static int *find_turns(const struct program *program, const struct completion *completion) {
  const struct program_disk *disk = &program->disk;
  int *ready = arena_alloc(program->arena, ((size_t)disk->buckets + 1) * sizeof *ready);
  for (int i = 0; i < program->weights->count; i++) {
    const struct weight *weight = &program->weights->items[i];
    const int done = completion->ready[i] > completion->freed[i] ? completion->ready[i] : completion->freed[i];
    if (weight->gradient < 0) continue;
    const int64_t first = weight->gradient / dtype_size(DTYPE_FLOAT32);
    const int64_t last = first + shape_count(weight->parameter->shape) - 1;
    for (int64_t b = first / disk->bucket; b <= last / disk->bucket; b++) {
      int *turn = &ready[bucket_of(program, b)];
      if (*turn < done) *turn = done;
    }
  }
  for (int64_t turn = 1; turn < disk->buckets; turn++)
    if (ready[turn] < ready[turn - 1]) ready[turn] = ready[turn - 1];
  return ready;
}

/* The most turns that are taken together, as a layer's are. */
static int64_t most_together(const struct program_disk *disk, const int *ready) {
  int64_t most = 0;
  for (int64_t turn = 0, together = 0; turn < disk->buckets; turn++) {
    together = turn > 0 && ready[turn] == ready[turn - 1] ? together + 1 : 1;
    if (together > most) most = together;
  }
  return most;
}

static void update_in_backward(struct program *program) {
  struct program_disk *disk = &program->disk;
  struct completion completion;
  find_completion(program, &completion);
  const int *ready = find_turns(program, &completion);
  const int64_t share = (weights_type(program->weights)->bytes + weights_type(program->gradients)->bytes) / SHARE;
  const int64_t together = most_together(disk, ready), most = share / disk_slot_bytes(program);
  const int64_t wanted = together < most ? together : most;
  if (wanted > disk->slots) disk->slots = wanted;
  disk->in_backward = true;
  program->ranks.sends_always = program->job->accumulation.num_steps == 1;
  mark_completion(&completion, ready, (int)disk->buckets);
}

/* By turn, the points after which the pieces can be taken, in the order of their turns: the last one first. A layer's
 * states have slots, so that they come and go while the backward is at the next one. */
static void update_pieces(struct program *program) {
  struct program_disk *disk = &program->disk;
  struct completion completion;
  int *ready = arena_alloc(program->arena, ((size_t)disk->n_pieces + 1) * sizeof *ready);
  find_completion(program, &completion);
  for (int i = 0; i < disk->n_pieces; i++) {
    const struct disk_piece *piece = &disk->pieces[disk->n_pieces - 1 - i];
    ready[i] = piece->ready;
    if (piece->unit >= 0 && piece->buckets > disk->slots) disk->slots = piece->buckets;
  }
  disk->in_backward = true;
  program->ranks.sends_always = true;
  mark_completion(&completion, ready, disk->n_pieces);
}

/* ---- More slots, in memory of gradients ---- */

enum { PAGE = 1 << 12 }; /* what transfers past the system's cache begin at */

/* Bytes from the gradients' first one on. */
struct free_memory {
  int64_t from, to;
};

static bool is_aliased(const struct program *program, int64_t from, int64_t to) {
  for (int i = 0; i < program->aliases.count; i++) {
    const struct alias *alias = &program->aliases.items[i];
    if (alias->at < to && from < alias->at + storage_bytes(alias->storage)) return true;
  }
  return false;
}

static int compare_gradients(const void *left, const void *right) {
  const struct weight *a = *(const struct weight *const *)left, *b = *(const struct weight *const *)right;
  return a->gradient < b->gradient ? -1 : a->gradient > b->gradient;
}

static const struct weight **sorted_gradients(const struct program *program, int *count) {
  const struct weight **sorted = arena_alloc(program->arena, ((size_t)program->weights->count + 1) * sizeof *sorted);
  *count = 0;
  for (int i = 0; i < program->weights->count; i++)
    if (program->weights->items[i].gradient >= 0) sorted[(*count)++] = &program->weights->items[i];
  qsort(sorted, (size_t)*count, sizeof *sorted, compare_gradients);
  return sorted;
}

/* The largest memory of gradients that nothing uses before the backward writes them, all after so many points. The norm
 * reads what is between gradients, so it begins and ends at those that have nothing there. */
static struct free_memory largest_free(const struct program *program, const struct completion *completion, int points) {
  struct free_memory found = {0}, memory = {0};
  int count;
  const struct weight **sorted = sorted_gradients(program, &count);
  for (int i = 0; i < count; i++) {
    const int64_t from = sorted[i]->gradient;
    const int64_t to = from + shape_count(sorted[i]->parameter->shape) * dtype_size(DTYPE_FLOAT32);
    const bool is_free = !sorted[i]->zero && completion->first[sorted[i] - program->weights->items] > points &&
                         !is_aliased(program, from, to);
    if (!is_free) continue;
    if (memory.to != from) memory.from = from;
    memory.to = to;
    if (memory.to - memory.from > found.to - found.from) found = memory;
  }
  return found;
}

/* Of the arena, whose first members are the other slots and the weights. */
static int64_t page_aligned(const struct program *program, int64_t at) {
  const int64_t before = program->disk.slots * disk_slot_bytes(program) + weights_type(program->weights)->bytes;
  return (before + at + PAGE - 1) / PAGE * PAGE - before;
}

/* Slots that are free again before the turns from `last` on, which come after point ready[last]. */
static void try_ahead(struct program *program, const struct completion *completion, const int *ready, int64_t last) {
  struct program_disk *disk = &program->disk;
  const struct free_memory memory = largest_free(program, completion, ready[last]);
  const int64_t at = page_aligned(program, memory.from);
  int64_t before = last;
  while (before > 0 && ready[before - 1] == ready[last]) before--;
  int64_t slots = (memory.to - at) / disk_slot_bytes(program);
  if (slots > before - disk->slots) slots = before - disk->slots;
  if (slots <= disk->ahead.slots) return;
  disk->ahead.slots = slots;
  disk->ahead.at = at;
  disk->ahead.turns = before / (slots + disk->slots) * (slots + disk->slots);
  disk->ahead.last = last;
}

void plan_disk_ahead(struct program *program) {
  if (!program->disk.in_backward || program->disk.n_pieces > 0 || program->job->accumulation.num_steps > 1) return;
  struct completion completion;
  find_completion(program, &completion);
  const int *ready = find_turns(program, &completion);
  for (int64_t turn = 0; turn < program->disk.buckets; turn++)
    if (turn + 1 == program->disk.buckets || ready[turn + 1] > ready[turn])
      try_ahead(program, &completion, ready, turn);
}

/* ---- The pass ---- */

bool plan_disk(struct program *program, struct diagnostics *diags) {
  const struct job *job = program->job;
  if (program->kind != PROGRAM_TRAIN || job->parallelism.offload.optimizer != OFFLOAD_NVME) return true;
  const struct obstacle obstacle = find_obstacle(program);
  if (obstacle.key == NULL) {
    divide(program);
    if (program->disk.n_pieces > 0)
      update_pieces(program);
    else if (can_update_in_backward(program))
      update_in_backward(program);
    return true;
  }
  diag_error(diags, job_where(job, "parallelism.offload.optimizer"),
             "'parallelism.offload.optimizer: nvme' does not go with '%s': %s", obstacle.key, obstacle.why);
  diag_note(diags, job_where(job, obstacle.key), "'%s' is set here", obstacle.key);
  diag_help(diags, "%s", obstacle.help);
  return false;
}
