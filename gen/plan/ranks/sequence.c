#include "gen/plan/ranks/sequence.h"

#include <string.h>

#include "gen/ir/op.h"
#include "gen/plan/ranks/shard.h"
#include "gen/plan/ranks/tree.h"
#include "gen/program/sending.h"
#include "gen/program/sharding.h"
#include "gen/program/target.h"

/* A collective in flight, and the statements that have started since. */
struct open {
  int collective; /* by its position among those in sequence */
  const char *first, *last;
  bool over; /* nothing overlaps it, and nothing waits for it later */
};

struct sequence {
  struct program *program;
  struct collective_list done; /* in order */
  struct {
    struct open *items;
    int count, capacity;
  } sums, replicated, gathers; /* each in the order in which they are awaited */
  int awaited_sums, awaited_gathers;
};

const char *step_label(const struct program *program, const struct step *step, int iteration) {
  if (step->callee == NULL) return step->kernel->name;
  if (step->node->call->count == 1) return step->callee->name;
  return arena_printf(program->arena, "%s of layer %d", step->callee->name, iteration);
}

static void add_event(struct sequence *sequence, enum event_kind kind, const struct step *step, int collective) {
  struct event event = {kind, step, collective};
  ARENA_PUSH(sequence->program->arena, *sequence->program->ranks.events, event);
}

/* ---- What overlaps ---- */

static void note(struct open *open, const char *name) {
  if (open->first == NULL) open->first = name;
  open->last = name;
}

/* A statement overlaps all that is in flight. */
static void note_statement(struct sequence *sequence, const struct step *step, int iteration) {
  const char *name = step_label(sequence->program, step, iteration);
  add_event(sequence, EVENT_RUN, step, 0);
  for (int i = sequence->awaited_sums; i < sequence->sums.count; i++) note(&sequence->sums.items[i], name);
  for (int i = 0; i < sequence->replicated.count; i++) note(&sequence->replicated.items[i], name);
  for (int i = sequence->awaited_gathers; i < sequence->gathers.count; i++) note(&sequence->gathers.items[i], name);
}

static void await(struct sequence *sequence, const struct open *open) {
  struct arena *arena = sequence->program->arena;
  if (open->over) return;
  add_event(sequence, EVENT_AWAIT, NULL, open->collective);
  if (open->first == NULL) return;
  bool one = strcmp(open->first, open->last) == 0;
  sequence->done.items[open->collective].overlaps =
      one ? open->first : arena_printf(arena, "%s to %s", open->first, open->last);
}

static void await_sums(struct sequence *sequence, int count) {
  for (; sequence->awaited_sums < count; sequence->awaited_sums++)
    await(sequence, &sequence->sums.items[sequence->awaited_sums]);
}

static void await_gathers(struct sequence *sequence) {
  for (; sequence->awaited_gathers < sequence->gathers.count; sequence->awaited_gathers++)
    await(sequence, &sequence->gathers.items[sequence->awaited_gathers]);
}

/* ---- What begins ---- */

static void begin(struct sequence *sequence, struct collective collective) {
  ARENA_PUSH(sequence->program->arena, sequence->done, collective);
  add_event(sequence, EVENT_BEGIN, NULL, sequence->done.count - 1);
}

/* Nothing continues until it has ended. */
static void run_alone(struct sequence *sequence, struct collective collective) {
  begin(sequence, collective);
  add_event(sequence, EVENT_AWAIT, NULL, sequence->done.count - 1);
}

static void begin_gathers(struct sequence *sequence, int unit) {
  struct program *program = sequence->program;
  for (int i = program->ranks.fsdp_units.items[unit].first; i < program->ranks.fsdp_units.items[unit].end; i++) {
    struct open open = {.collective = sequence->done.count};
    begin(sequence, shard_layer_gather(program, &program->optimizer.flat_ranges.items[i]));
    ARENA_PUSH(program->arena, sequence->gathers, open);
  }
}

/* In the order of a tree, one after the other. */
static void exchange_bucket(struct sequence *sequence, int bucket) {
  struct collective list[AXES];
  int count = tree_bucket(sequence->program, bucket, list);
  for (int i = 0; i < count; i++) {
    struct open open = {.collective = sequence->done.count, .over = !tree_is_async(sequence->program, list[i].axis)};
    if (open.over)
      run_alone(sequence, list[i]);
    else
      begin(sequence, list[i]);
    ARENA_PUSH(sequence->program->arena, sequence->sums, open);
  }
}

/* What follows on a bucket along another axis. */
static struct collective follow(const struct program *program, int bucket, enum axis axis) {
  const struct collective *first = &program->ranks.collectives.items[bucket];
  if (is_sharded(program)) return shard_replicated(program, &program->optimizer.flat_ranges.items[bucket], first, axis);
  struct collective next = *first;
  next.axis = axis;
  next.chained = true;
  next.after = NULL;
  return next;
}

/* The gradients that are complete after a statement. */
static void begin_sums(struct sequence *sequence, const struct step *step, int iteration) {
  struct program *program = sequence->program;
  for (int i = 0; i < program->ranks.n_buckets; i++) {
    const struct collective *bucket = &program->ranks.collectives.items[i];
    struct open open = {.collective = sequence->done.count};
    if (bucket->after != step || bucket->iteration != iteration) continue;
    if (job_has_tree(program->job)) {
      exchange_bucket(sequence, i);
      continue;
    }
    begin(sequence, *bucket);
    ARENA_PUSH(program->arena, sequence->sums, open);
    for (int k = 0; k < bucket->then.count; k++) {
      open.collective++;
      begin(sequence, follow(program, i, bucket->then.items[k]));
      ARENA_PUSH(program->arena, sequence->replicated, open);
    }
  }
}

/* What a device exchanges for what a kernel asks for. */
static struct op_exchange moved(const struct target *target, struct op_exchange exchange) {
  if (!exchange.by_data || !target->ranks.fixed_sizes) return exchange;
  exchange.by_data = false;
  exchange.form = exchange.fixed;
  exchange.count = exchange.most;
  return exchange;
}

/* The axes along which ranks take part in an exchange. */
static struct axes axes_of(const struct program *program, struct op_exchange exchange) {
  const enum axis axis = (enum axis)exchange.axis;
  if (exchange.axis < 0) return program->mesh.batches;
  return (struct axes){{axis}, ranks_along(program, axis) > 1};
}

/* One thing that a statement's kernel exchanges with other ranks while it runs, with near ones first. */
static void list_exchange(const struct program *program, const struct step *step, struct op_exchange exchange,
                          struct collective_list *list) {
  static const enum collective_kind kinds[] = {[EXCHANGE_ALL_REDUCE] = COLLECTIVE_ALL_REDUCE,
                                               [EXCHANGE_REDUCE_SCATTER] = COLLECTIVE_REDUCE_SCATTER,
                                               [EXCHANGE_ALL_GATHER] = COLLECTIVE_ALL_GATHER,
                                               [EXCHANGE_ALL_TO_ALL] = COLLECTIVE_ALL_TO_ALL,
                                               [EXCHANGE_SEND] = COLLECTIVE_SEND};
  const struct axes axes = axes_of(program, exchange);
  for (int i = axes.count - 1; i >= 0; i--) {
    struct collective collective = {.kind = kinds[exchange.form],
                                    .axis = axes.items[i],
                                    .direct = exchange.form == EXCHANGE_REDUCE_SCATTER,
                                    .by_data = exchange.by_data,
                                    .what = arena_printf(program->arena, "%s in %s", exchange.what, step->kernel->name),
                                    .width = dtype_size(exchange.dtype),
                                    .count = exchange.count,
                                    .times = program->kind == PROGRAM_TRAIN ? program->job->accumulation.num_steps : 1};
    ARENA_PUSH(program->arena, *list, collective);
  }
}

void list_kernel_exchanges(const struct program *program, const struct step *step, struct collective_list *list) {
  const struct op_ranks *ranks = &step->node->kind->ranks;
  if (step->callee != NULL || ranks->exchanged == NULL) return;
  struct op_exchange exchange = ranks->exchanged(step->node);
  int count = 0;
  do {
    list_exchange(program, step, moved(program->target, exchange), list);
    count++;
  } while (ranks->exchanged_next != NULL && ranks->exchanged_next(step->node, count, &exchange));
}

/* What a kernel exchanges while it runs. */
static void exchange_in_kernel(struct sequence *sequence, const struct step *step) {
  struct collective_list list = {0};
  list_kernel_exchanges(sequence->program, step, &list);
  for (int i = 0; i < list.count; i++) run_alone(sequence, list.items[i]);
}

/* The same of all that a function calls, in order. */
static void exchange(struct sequence *sequence, const struct step *step) {
  const struct function *callee = step->callee;
  if (callee == NULL) exchange_in_kernel(sequence, step);
  for (int s = 0; callee != NULL && s < callee->n_steps; s++)
    for (int k = 0; k < (callee->steps[s].callee != NULL ? callee->steps[s].node->call->count : 1); k++)
      exchange(sequence, &callee->steps[s]);
}

/* ---- In the order in which it runs ---- */

static void visit_function(struct sequence *sequence, const struct function *function) {
  bool gathers = weights_are_split(sequence->program);
  for (int s = 0; s < function->n_steps; s++) {
    const struct step *step = &function->steps[s];
    const struct call *call = step->node->call;
    int count = step->callee != NULL ? call->count : 1;
    for (int k = 0; k < count; k++) {
      int iteration = count > 1 && call->forward != NULL ? count - 1 - k : k;
      bool gathers_here = step->used != NULL && gathers;
      if (gathers_here) await_gathers(sequence);
      if (step->reduced != NULL && step->reduced[iteration] > 0) await_sums(sequence, step->reduced[iteration]);
      if (gathers_here && step->begins[iteration] >= 0) begin_gathers(sequence, step->begins[iteration]);
      bool within = step->callee != NULL && count == 1 && (step->used == NULL || function_sends(step->callee));
      if (within) {
        visit_function(sequence, step->callee);
      } else {
        note_statement(sequence, step, iteration);
        exchange(sequence, step);
      }
      begin_sums(sequence, step, iteration);
    }
  }
}

static void await_one_at_end(struct sequence *sequence, const struct open *open) {
  if (open->over) return;
  add_event(sequence, EVENT_AWAIT, NULL, open->collective);
  if (open->first != NULL) sequence->done.items[open->collective].overlaps = "the rest of the backward";
}

/* Sums that nothing awaits within the backward continue to its end. */
static void await_end(struct sequence *sequence) {
  for (; sequence->awaited_sums < sequence->sums.count; sequence->awaited_sums++)
    await_one_at_end(sequence, &sequence->sums.items[sequence->awaited_sums]);
  for (int i = 0; i < sequence->replicated.count; i++) await_one_at_end(sequence, &sequence->replicated.items[i]);
}

const struct function *repeated_entry(const struct program *program) {
  bool writes = program->kind == PROGRAM_GENERATE && program->entry.second != NULL;
  return writes ? program->entry.second : program->entry.forward;
}

void sequence_collectives(struct program *program) {
  struct sequence sequence = {.program = program};
  program->ranks.events = arena_alloc(program->arena, sizeof *program->ranks.events);
  bool gathers = program->ranks.fsdp_units.count > 0 && weights_are_split(program);
  if (gathers) begin_gathers(&sequence, program->ranks.first_fsdp_unit);
  visit_function(&sequence, repeated_entry(program));
  if (program->entry.backward != NULL) visit_function(&sequence, program->entry.backward);
  await_end(&sequence);
  for (int i = program->ranks.n_buckets; i < program->ranks.collectives.count; i++)
    ARENA_PUSH(program->arena, sequence.done, program->ranks.collectives.items[i]);
  program->ranks.collectives.items = sequence.done.items;
  program->ranks.collectives.count = sequence.done.count;
  program->ranks.collectives.capacity = sequence.done.capacity;
}
