/* A pipeline: its stages, and which gradients are whose. */
#include <string.h>

#include "gen/emit/rows.h"
#include "gen/emit/values.h"
#include "gen/program/stage_parameters.h"

/* Elements of a weight's gradient up to the next one. */
static int64_t padded(const struct weight *weight) {
  const int64_t line = 16;
  return (shape_count(weight->parameter->shape) + line - 1) / line * line;
}

static struct jinja_value gradient_value(const struct program *program, const struct weight *weight) {
  struct arena *arena = program->arena;
  struct jinja_value value = jinja_map(arena);
  set_comment(arena, value, "name", weight->path);
  set_int(arena, value, "first", weight->gradient / dtype_size(DTYPE_FLOAT32));
  set_int(arena, value, "count", padded(weight));
  return value;
}

/* Gradients to which stages of several ranks add: [{name, first, count, stages: [a, b]}], of the ranks' first stages.
 */
static struct jinja_value shared_value(const struct program *program) {
  struct arena *arena = program->arena;
  const struct pipeline *pipeline = &program->ranks.pipeline;
  struct jinja_value list = jinja_list(arena);
  for (int i = 0; i < program->weights->count; i++) {
    const struct weight *weight = &program->weights->items[i];
    struct jinja_value stages = jinja_list(arena);
    for (int k = 0; k < pipeline->ranks; k++)
      if (rank_uses(pipeline, k, weight->path)) jinja_push(arena, stages, jinja_int(k));
    if (jinja_count(stages) < 2 || weight->gradient < 0) continue;
    struct jinja_value value = gradient_value(program, weight);
    jinja_set(arena, value, "stages", stages);
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

static bool is_of(enum gradient_set set, const struct weight *weight) {
  if (weight->gradient < 0) return false;
  return set == GRADIENTS_ALL || (set == GRADIENTS_CUT) == (weight->parameter->placement.form != PLACED_WHOLE);
}

static bool is_before(const struct pipeline *pipeline, int rank, const char *name) {
  for (int k = 0; k < rank; k++)
    if (rank_uses(pipeline, k, name)) return true;
  return false;
}

/* Those of the gradients of a rank that one before it has as well, or those that none has, neighbours in one row. */
static int add_gradients(const struct program *program, enum gradient_set set, int rank, bool again,
                         struct table_row *rows) {
  const struct pipeline *pipeline = &program->ranks.pipeline;
  int count = 0;
  for (int i = 0; i < program->weights->count; i++) {
    const struct weight *weight = &program->weights->items[i];
    const int64_t first = weight->gradient / dtype_size(DTYPE_FLOAT32), length = padded(weight);
    if (!rank_uses(pipeline, rank, weight->path) || !is_of(set, weight)) continue;
    if (is_before(pipeline, rank, weight->path) != again) continue;
    if (count > 0 && rows[count - 1].steps[0] + rows[count - 1].same[0] == first)
      rows[count - 1].same[0] += length;
    else
      rows[count++] = (struct table_row){.name = weight->path, .same = {length}, .steps = {first}};
  }
  return count;
}

/* Names of what is said of a set of gradients. */
struct stage_table {
  const char *table, *begins, *counted;
};

/* A table of them, where the rows of each rank begin, and the end, and where those of each rank end that count. */
static void set_gradients(const struct program *program, enum gradient_set set, struct jinja_value value,
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
  jinja_set(arena, value, names.table, table_value(arena, rows, count, 1, 1));
}

void set_stage_gradients(const struct program *program, struct jinja_value value) {
  static const struct stage_table whole = {"stage_gradients", "first_gradients", "counted_gradients"};
  static const struct stage_table cut = {"split_stage_gradients", "first_split_gradients", "counted_split_gradients"};
  bool splits = program->job->parallelism.axes[AXIS_TP] > 1;
  if (program->ranks.pipeline.stages == 0) return;
  set_gradients(program, splits ? GRADIENTS_WHOLE : GRADIENTS_ALL, value, whole);
  if (splits) set_gradients(program, GRADIENTS_CUT, value, cut);
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

static struct jinja_value rooms_value(const struct program *program) {
  struct jinja_value list = jinja_list(program->arena);
  for (int k = 0; k < program->ranks.pipeline.stages; k++)
    jinja_push(program->arena, list, jinja_int(program->ranks.pipeline.rooms[k]));
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
  set_int(arena, value, "most_rooms", program->kind == PROGRAM_TRAIN ? program->ranks.pipeline.most_rooms : 0);
  jinja_set(arena, value, "rooms", rooms_value(program));
  set_bool(arena, value, "defers", schedule->defers);
  jinja_set(arena, value, "stages", stages_value(program));
  jinja_set(arena, value, "ranges", ranges_value(program));
  jinja_set(arena, value, "shared", shared_value(program));
  return value;
}
