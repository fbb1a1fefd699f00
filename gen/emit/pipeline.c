/* A pipeline: its stages, and which gradients are whose. */
#include <string.h>

#include "gen/emit/rows.h"
#include "gen/emit/values.h"
#include "gen/program/sharding.h"
#include "gen/program/stage_parameters.h"
#include "gen/program/target.h"

/* Elements of a weight's gradient up to the next one. */
static int64_t padded(const struct weight *weight) {
  const int64_t line = 16;
  return (shape_count(weight->parameter->shape) + line - 1) / line * line;
}

/* Where a stage has the gradient of a weight that others add to as well: where ranks shard it, a rank's part, with
 * space for the longest. */
static struct jinja_value side_value(const struct program *program, const struct weight *weight, int stage) {
  struct arena *arena = program->arena;
  struct jinja_value value = jinja_map(arena);
  int64_t first = weight->gradient / dtype_size(DTYPE_FLOAT32), count = padded(weight);
  if (shard_has_own_gradients(program)) {
    const struct flat_range *range = &program->optimizer.flat_ranges.items[range_of_gradient(program, first, stage)];
    first = range->state[0];
    count = shard_last(program, range);
  }
  set_int(arena, value, "stage", stage);
  set_int(arena, value, "first", first);
  set_int(arena, value, "count", count);
  return value;
}

/* Gradients to which stages of several ranks add: [{name, sides: [{stage, first, count}]}], of the ranks' first stages.
 */
static struct jinja_value shared_value(const struct program *program) {
  struct arena *arena = program->arena;
  const struct pipeline *pipeline = &program->ranks.pipeline;
  struct jinja_value list = jinja_list(arena);
  for (int i = 0; i < program->weights->count; i++) {
    const struct weight *weight = &program->weights->items[i];
    struct jinja_value value = jinja_map(arena), sides = jinja_list(arena);
    for (int k = 0; k < pipeline->ranks; k++)
      if (rank_uses(pipeline, k, weight->path) && weight->gradient >= 0)
        jinja_push(arena, sides, side_value(program, weight, k));
    if (jinja_count(sides) < 2) continue;
    set_comment(arena, value, "name", weight->path);
    jinja_set(arena, value, "sides", sides);
    jinja_push(arena, list, value);
  }
  return list;
}

struct jinja_value stage_ranges_value(const struct program *program, const struct flat_range_list *ranges) {
  struct arena *arena = program->arena;
  struct jinja_value list = jinja_list(arena);
  for (int k = 0; program->ranks.pipeline.stages > 0 && k <= program->ranks.pipeline.ranks; k++) {
    int first = 0;
    while (first < ranges->count && ranges->items[first].stage < k) first++;
    jinja_push(arena, list, jinja_int(first));
  }
  return list;
}

/* What the stages have of the weights, a row each: the stage, the first element, how many. */
static struct jinja_value ranges_value(const struct program *program) {
  const struct stage_range_list *ranges = &program->ranks.pipeline.ranges;
  struct table_row *rows = arena_alloc(program->arena, ((size_t)ranges->count + 1) * sizeof *rows);
  for (int i = 0; i < ranges->count; i++) {
    const struct stage_range *range = &ranges->items[i];
    rows[i] = (struct table_row){
        .name = range->weight->path, .steps = {range->stage, range->first}, .same = {range->end - range->first}};
  }
  return table_value(program->arena, rows, ranges->count, 2, 1);
}

/* The next of the ranks that use a parameter after rank `from`; -1: none. */
static int next_user(const struct pipeline *pipeline, int from, const char *path) {
  for (int k = from + 1; k < pipeline->ranks; k++)
    if (rank_uses(pipeline, k, path)) return k;
  return -1;
}

static bool has_row(const struct table_row *rows, int count, int lower, int higher) {
  for (int i = 0; i < count; i++)
    if (rows[i].steps[0] == lower && rows[i].steps[1] == higher) return true;
  return false;
}

/* Ranks that exchange gradients and are no neighbours in a ring, a row each: the lower one, the higher one. None where
 * there are none, or where the device needs no channel. */
static struct jinja_value pairs_value(const struct program *program) {
  const struct pipeline *pipeline = &program->ranks.pipeline;
  const size_t most = (size_t)pipeline->ranks * (size_t)pipeline->ranks;
  struct table_row *rows = arena_alloc(program->arena, most * sizeof *rows);
  int count = 0;
  for (int i = 0; i < program->weights->count && program->target->ranks.opens_channels; i++) {
    const struct weight *weight = &program->weights->items[i];
    if (weight->gradient < 0) continue;
    for (int k = next_user(pipeline, -1, weight->path), next = k; k >= 0; k = next) {
      next = next_user(pipeline, k, weight->path);
      if (next < 0 || next - k == 1 || next - k == pipeline->ranks - 1 || has_row(rows, count, k, next)) continue;
      rows[count++] = (struct table_row){.name = weight->path, .steps = {k, next}};
    }
  }
  return count == 0 ? jinja_none() : table_value(program->arena, rows, count, 2, 0);
}

static bool is_of(enum gradient_set set, const struct weight *weight) {
  if (weight->gradient < 0) return false;
  if (set == GRADIENTS_PARTIAL) return weight->parameter->partial_gradient;
  static const enum placement_form forms[] = {
      [GRADIENTS_CUT] = PLACED_SPLIT, [GRADIENTS_EXPERT] = PLACED_EXPERT, [GRADIENTS_WHOLE] = PLACED_WHOLE};
  return set == GRADIENTS_ALL || weight->parameter->placement.form == forms[set];
}

static bool is_before(const struct pipeline *pipeline, int rank, const char *name) {
  for (int k = 0; k < rank; k++)
    if (rank_uses(pipeline, k, name)) return true;
  return false;
}

/* Those of the gradients of a rank that one before it has as well, or those that none has, neighbours in one row; where
 * ranks shard them, of one flat range. */
static int add_gradients(const struct program *program, enum gradient_set set, int rank, bool again,
                         struct table_row *rows) {
  const struct pipeline *pipeline = &program->ranks.pipeline;
  const bool sharded = shard_has_own_gradients(program);
  int count = 0;
  for (int i = 0; i < program->weights->count; i++) {
    const struct weight *weight = &program->weights->items[i];
    const int64_t first = weight->gradient / dtype_size(DTYPE_FLOAT32), length = padded(weight);
    struct table_row row = {.name = weight->path, .same = {length}, .steps = {first}};
    if (!rank_uses(pipeline, rank, weight->path) || !is_of(set, weight)) continue;
    if (is_before(pipeline, rank, weight->path) != again) continue;
    if (sharded) {
      row.steps[0] = range_of_gradient(program, first, rank);
      row.steps[1] = first - program->optimizer.flat_ranges.items[row.steps[0]].gradient;
    }
    struct table_row *last = count > 0 ? &rows[count - 1] : NULL;
    const int column = sharded ? 1 : 0;
    bool follows = last != NULL && last->steps[column] + last->same[0] == row.steps[column];
    if (follows && (!sharded || last->steps[0] == row.steps[0]))
      last->same[0] += length;
    else
      rows[count++] = row;
  }
  return count;
}

/* Names of what is said of a set of gradients. */
struct stage_table {
  const char *table, *begins, *counted;
};

/* A table of them, where the rows of each rank begin, and the end, and where those of each rank end that count. How
 * many rows there are. */
static int set_gradients(const struct program *program, enum gradient_set set, struct jinja_value value,
                         struct stage_table names) {
  struct arena *arena = program->arena;
  const size_t most = 2 * (size_t)program->weights->count + 1;
  struct table_row *rows = arena_alloc(arena, most * sizeof *rows);
  struct jinja_value firsts = jinja_list(arena), counted = jinja_list(arena);
  int count = 0;
  jinja_push(arena, firsts, jinja_int(0));
  for (int k = 0; k < program->ranks.pipeline.ranks; k++) {
    count += add_gradients(program, set, k, false, rows + count);
    jinja_push(arena, counted, jinja_int(count));
    count += add_gradients(program, set, k, true, rows + count);
    jinja_push(arena, firsts, jinja_int(count));
  }
  jinja_set(arena, value, names.begins, firsts);
  jinja_set(arena, value, names.counted, counted);
  jinja_set(arena, value, names.table, table_value(arena, rows, count, shard_has_own_gradients(program) ? 2 : 1, 1));
  return count;
}

static void push_stage_set(const struct program *program, enum gradient_set set, const char *stages, enum axis axis,
                           struct jinja_value list) {
  static const struct stage_table names = {"rows", "first", "counted"};
  struct arena *arena = program->arena;
  struct jinja_value value = jinja_map(arena);
  const struct parameter expert = {.placement.form = PLACED_EXPERT, .axis = (int)axis};
  if (set_gradients(program, set, value, names) == 0 && axis != axis_sharding(program, SHARDED_LAYERS)) return;
  set_text(arena, value, "name", arena_printf(arena, "%sstage", stages));
  set_text(arena, value, "stages", stages);
  set_text(arena, value, "axis", axis_name(arena, axis));
  jinja_set(arena, value, "along",
            axis_names_value(arena, summed_along(program, set == GRADIENTS_EXPERT ? &expert : NULL)));
  jinja_push(arena, list, value);
}

struct jinja_value stage_gradients_value(const struct program *program) {
  struct jinja_value list = jinja_list(program->arena);
  const enum axis tensors = axis_sharding(program, SHARDED_TENSORS), experts = axis_sharding(program, SHARDED_EXPERTS);
  if (program->ranks.pipeline.stages == 0) return list;
  if (tensors != AXES) push_stage_set(program, GRADIENTS_CUT, "split_", tensors, list);
  if (experts != AXES) push_stage_set(program, GRADIENTS_EXPERT, "expert_", experts, list);
  push_stage_set(program, tensors == AXES && experts == AXES ? GRADIENTS_ALL : GRADIENTS_WHOLE, "",
                 axis_sharding(program, SHARDED_LAYERS), list);
  return list;
}

/* Elements of the rows of each rank. */
static struct jinja_value partial_counts_value(const struct program *program) {
  const struct pipeline *pipeline = &program->ranks.pipeline;
  struct jinja_value list = jinja_list(program->arena);
  for (int k = 0; k < pipeline->ranks; k++) {
    int64_t count = 0;
    for (int i = 0; i < program->weights->count; i++) {
      const struct weight *weight = &program->weights->items[i];
      if (rank_uses(pipeline, k, weight->path) && is_of(GRADIENTS_PARTIAL, weight)) count += padded(weight);
    }
    jinja_push(program->arena, list, jinja_int(count));
  }
  return list;
}

void set_partial_gradients(const struct program *program, struct jinja_value value) {
  static const struct stage_table partial = {"partial_rows", "first_partial", "counted_partial"};
  struct arena *arena = program->arena;
  if (program->ranks.partial_gradients == 0) return;
  if (program->ranks.pipeline.stages == 0) {
    jinja_set(arena, value, "partial_rows", gradients_value(program, GRADIENTS_PARTIAL));
    return;
  }
  set_gradients(program, GRADIENTS_PARTIAL, value, partial);
  jinja_set(arena, value, "partial_counts", partial_counts_value(program));
}

/* ---- The schedule ---- */

static struct jinja_value number_value(struct arena *arena, struct schedule_number number) {
  struct jinja_value value = jinja_map(arena);
  set_int(arena, value, "constant", number.constant);
  set_int(arena, value, "ahead", number.ahead);
  return value;
}

/* [{first, end, waits, actions: [{kind, shift}]}], with numbers {constant, ahead}. */
static struct jinja_value loops_value(struct arena *arena, const struct schedule *schedule) {
  static const char *const kinds[ACTIONS] = {
      [ACTION_FORWARD] = "forward", [ACTION_BACKWARD] = "backward", [ACTION_DEFERRED] = "deferred"};
  struct jinja_value list = jinja_list(arena);
  for (int l = 0; l < schedule->n_loops; l++) {
    const struct schedule_loop *loop = &schedule->loops[l];
    struct jinja_value value = jinja_map(arena), actions = jinja_list(arena);
    for (int a = 0; a < loop->n_actions; a++) {
      struct jinja_value action = jinja_map(arena);
      set_text(arena, action, "kind", kinds[loop->actions[a].kind]);
      jinja_set(arena, action, "shift", number_value(arena, loop->actions[a].shift));
      jinja_push(arena, actions, action);
    }
    jinja_set(arena, value, "first", number_value(arena, loop->first));
    jinja_set(arena, value, "end", number_value(arena, loop->end));
    set_bool(arena, value, "waits", loop->waits);
    jinja_set(arena, value, "actions", actions);
    jinja_push(arena, list, value);
  }
  return list;
}

static struct jinja_value ahead_value(struct arena *arena, const struct schedule *schedule) {
  struct jinja_value list = jinja_list(arena);
  for (int64_t k = 0; k < schedule->ranks; k++) jinja_push(arena, list, jinja_int(schedule->ahead[k]));
  return list;
}

/* Arrays of gradients on their way: [{name, type, extent, peer}]. */
static struct jinja_value outgoing_value(const struct program *program) {
  struct arena *arena = program->arena;
  const struct pipeline *pipeline = &program->ranks.pipeline;
  struct jinja_value list = jinja_list(arena);
  for (int i = 0; i < pipeline->crossings.count; i++) {
    const struct crossing *crossing = &pipeline->crossings.items[i];
    if (crossing->outgoing == NULL) continue;
    struct jinja_value value = jinja_map(arena);
    set_text(arena, value, "name", crossing->outgoing);
    set_text(arena, value, "type", element_type(crossing->storage->dtype));
    set_text(arena, value, "extent", arena_printf(arena, "%lld", (long long)crossing->count));
    set_text(arena, value, "what", crossing->from > crossing->to ? "gradients" : "values");
    set_int(arena, value, "peer", crossing->to % pipeline->ranks);
    jinja_push(arena, list, value);
  }
  return list;
}

/* What ranks do not use of the arena: [{rank, member, first, bytes}]. */
static struct jinja_value unused_value(const struct program *program) {
  struct arena *arena = program->arena;
  struct jinja_value list = jinja_list(arena);
  for (int i = 0; i < program->ranks.pipeline.unused.count; i++) {
    const struct unused_range *range = &program->ranks.pipeline.unused.items[i];
    struct jinja_value value = jinja_map(arena);
    set_int(arena, value, "rank", range->rank);
    set_text(arena, value, "member", range->member);
    set_int(arena, value, "first", range->first);
    set_int(arena, value, "bytes", range->bytes);
    jinja_push(arena, list, value);
  }
  return list;
}

/* By stage, the unit with which it begins; units.count where it uses none. */
static struct jinja_value units_value(const struct program *program, const int *units) {
  struct jinja_value list = jinja_list(program->arena);
  for (int k = 0; units != NULL && k < program->ranks.pipeline.stages; k++)
    jinja_push(program->arena, list, jinja_int(units[k] >= 0 ? units[k] : program->ranks.fsdp_units.count));
  return list;
}

/* By rank, where its flat ranges of units begin, which are after all others. */
static struct jinja_value first_layers_value(const struct program *program) {
  const struct flat_range_list *ranges = &program->optimizer.flat_ranges;
  struct jinja_value list = jinja_list(program->arena);
  int i = 0;
  for (int k = 0; k < program->ranks.pipeline.ranks; k++) {
    while (i < ranges->count &&
           (ranges->items[i].stage < k || (ranges->items[i].stage == k && ranges->items[i].fsdp_unit < 0)))
      i++;
    jinja_push(program->arena, list, jinja_int(i));
  }
  return list;
}

static struct jinja_value slots_value(const struct program *program) {
  struct jinja_value list = jinja_list(program->arena);
  for (int k = 0; k < program->ranks.pipeline.stages; k++)
    jinja_push(program->arena, list, jinja_int(program->ranks.pipeline.slots[k]));
  return list;
}

struct jinja_value pipeline_value(const struct program *program) {
  struct arena *arena = program->arena;
  struct jinja_value value = jinja_map(arena);
  if (program->ranks.pipeline.stages == 0) return value;
  const struct schedule *schedule = &program->ranks.pipeline.schedule;
  set_int(arena, value, "count", program->ranks.pipeline.ranks);
  set_int(arena, value, "chunks", schedule->chunks);
  set_int(arena, value, "actions", schedule->chunks * schedule->micro_batches);
  set_int(arena, value, "last", program->ranks.pipeline.stages - 1);
  jinja_set(arena, value, "loops", loops_value(arena, schedule));
  jinja_set(arena, value, "ahead", ahead_value(arena, schedule));
  jinja_set(arena, value, "outgoing", outgoing_value(program));
  set_int(arena, value, "micro_batches", program->job->accumulation.num_steps);
  set_bool(arena, value, "all_forwards_first", program->job->parallelism.pp_schedule == SCHEDULE_GPIPE);
  set_int(arena, value, "max_slots", program->kind == PROGRAM_TRAIN ? program->ranks.pipeline.max_slots : 0);
  jinja_set(arena, value, "slots", slots_value(program));
  set_bool(arena, value, "defers", schedule->defers);
  set_bool(arena, value, "starts", schedule->starts);
  jinja_set(arena, value, "stages", stages_value(program));
  jinja_set(arena, value, "first_units", units_value(program, program->ranks.pipeline.first_units));
  jinja_set(arena, value, "last_units", units_value(program, program->ranks.pipeline.last_units));
  jinja_set(arena, value, "first_layers", first_layers_value(program));
  jinja_set(arena, value, "ranges", ranges_value(program));
  jinja_set(arena, value, "pairs", pairs_value(program));
  jinja_set(arena, value, "unused", unused_value(program));
  jinja_set(arena, value, "shared", shared_value(program));
  return value;
}
