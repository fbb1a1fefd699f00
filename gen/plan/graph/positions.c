#include "gen/plan/graph/positions.h"

#include <assert.h>

#include "gen/ir/builder.h"
#include "gen/ir/names.h"
#include "gen/ir/op.h"
#include "gen/ir/region.h"
#include "gen/ops/support/nodes.h"
#include "gen/plan/graph/normalize.h"

/* The placements that a node's operands must have, its inputs and then output 0, and that with which output 0 goes on.
 */
struct placed {
  struct placement *operands, back;
  bool gathers; /* another operation stands for it, over a rank's positions and those of all */
};

/* Placements of values are found forward from the entry's inputs; a value is whole until something that it is made of
 * is split. */
struct positions {
  struct program *program;
  struct builder *builder;
  struct diagnostics *diags;
  enum axis axis;
  int64_t ranks;
  struct placement *values; /* by value id */
  struct placed *nodes;     /* by node id, in the end */
};

static const struct placement whole = {.form = PLACED_WHOLE};

static struct placement *placement_of(const struct positions *positions, const struct value *value) {
  return &positions->values[value->id];
}

/* ---- What a node needs and gives ---- */

/* Numbers of batches: what is linear in means over a rank's positions is such a mean. */
static bool place_means(const struct positions *positions, const struct node *node, struct placement *operands) {
  struct mean inputs[10] = {0};
  for (int i = 0; i < node->n_inputs && i < 10; i++) {
    operands[i] = *placement_of(positions, node->inputs[i]);
    if (operands[i].form == PLACED_SPLIT) return false;
    inputs[i].form = operands[i].form == PLACED_MEAN ? MEAN_FIXED : MEAN_SAME;
  }
  const bool kept = node->kind->class == OP_VIEW || node->kind->types.converts;
  operands[node->n_inputs] = (struct placement){.form = PLACED_MEAN};
  if (node->kind->evaluation.mean == NULL) return kept;
  return node->kind->evaluation.mean(node, inputs).form == MEAN_FIXED;
}

/* Where a node has its positions of all operands, of which it gathers some. */
static bool place_gathering(const struct positions *positions, const struct node *node, struct placed *placed) {
  placed->gathers = node->kind->ranks.gathers(node) && placed->back.form == PLACED_SPLIT &&
                    placed->back.dim == node->kind->ranks.apart && placed->back.blocks == 1;
  for (int i = 0; i < node->n_inputs; i++)
    placed->gathers = placed->gathers && placement_equal(*placement_of(positions, node->inputs[i]), placed->back);
  for (int i = 0; i <= node->n_inputs; i++) placed->operands[i] = placed->back;
  return placed->gathers;
}

/* Where a node has parts of another dimension than that of the positions. */
static bool place_apart(const struct positions *positions, const struct node *node, struct placed *placed) {
  if (node->kind->ranks.apart == 0) return false;
  placed->back = *placement_of(positions, node->inputs[0]);
  if (positions->axis == AXIS_CP) return place_gathering(positions, node, placed);
  for (int i = 0; i < node->n_inputs; i++) placed->operands[i] = whole;
  placed->operands[node->n_inputs] = placement_split(node->kind->ranks.apart - 1, 1);
  return op_place(node, node->n_inputs, positions->ranks, placed->operands);
}

/* False: there are no such placements. */
static bool place_node(const struct positions *positions, const struct node *node, struct placed *placed) {
  struct placement *operands = placed->operands;
  int seed = -1;
  bool mean = false;
  for (int i = node->n_inputs - 1; i >= 0; i--) {
    const enum placement_form form = placement_of(positions, node->inputs[i])->form;
    if (form == PLACED_SPLIT) seed = i;
    mean = mean || form == PLACED_MEAN;
  }
  for (int i = 0; i <= node->n_inputs; i++) operands[i] = whole;
  placed->back = whole;
  if (mean && !place_means(positions, node, operands)) return false;
  if (seed >= 0 && !mean) {
    operands[seed] = *placement_of(positions, node->inputs[seed]);
    if (!op_place(node, seed, positions->ranks, operands)) return place_apart(positions, node, placed);
  }
  placed->back = operands[node->n_inputs];
  return placed->back.form != PLACED_PARTIAL;
}

static bool has_split(const struct node *node, const struct placed *placed) {
  for (int i = 0; i <= node->n_inputs; i++)
    if (placed->operands[i].form == PLACED_SPLIT) return true;
  return false;
}

/* ---- Forward ---- */

static void set(const struct positions *positions, const struct value *value, struct placement placement,
                bool *changed) {
  struct placement *known = placement_of(positions, value);
  if (known->form != PLACED_WHOLE || placement.form == PLACED_WHOLE) return;
  *known = placement;
  *changed = true;
}

static void spread_call(const struct positions *positions, const struct node *node, bool *changed) {
  const struct call *call = node->call;
  const struct region *callee = call->callee;
  for (int i = 0; i < node->n_inputs; i++) {
    set(positions, callee->inputs.items[i], *placement_of(positions, node->inputs[i]), changed);
    if (call->count > 1 && call->carry[i] >= 0)
      set(positions, callee->inputs.items[i], *placement_of(positions, callee->results.items[call->carry[i]]), changed);
  }
  for (int i = 0; i < node->n_outputs; i++)
    set(positions, node->outputs[i], *placement_of(positions, callee->results.items[i]), changed);
}

static void spread(const struct positions *positions) {
  const struct graph *graph = positions->program->graph;
  for (bool changed = true; changed;) {
    changed = false;
    for (int r = graph->n_regions - 1; r >= 0; r--)
      for (int i = 0; i < graph->regions[r]->nodes.count; i++) {
        const struct node *node = graph->regions[r]->nodes.items[i];
        struct placed *placed = &positions->nodes[node->id];
        if (node->call != NULL)
          spread_call(positions, node, &changed);
        else if (place_node(positions, node, placed) && node->n_outputs > 0)
          set(positions, node->outputs[0], placed->back, &changed);
      }
  }
}

/* ---- What cannot be divided ---- */

static const char *key_of(const struct positions *positions) {
  return arena_printf(positions->program->arena, "parallelism.%s", job_axis_names[positions->axis]);
}

static bool refuse(const struct positions *positions, const struct node *node, const char *why) {
  diag_error(positions->diags, node->where, "'%s' %s", node->kind->name, why);
  diag_note(positions->diags, job_where(positions->program->job, key_of(positions)),
            "'%s' divides each sequence among %lld ranks by this", key_of(positions), (long long)positions->ranks);
  diag_help(positions->diags, "leave it out, or give the model attention and operations on each position alone");
  return false;
}

static bool refuse_node(const struct positions *positions, const struct node *node) {
  const struct shape q = node->inputs[0]->shape;
  if (node->kind->kernel.random)
    return refuse(positions, node, "draws four random numbers at a time, and a rank's positions in a row have others");
  if (node->kind->ranks.apart == 0 || node->n_inputs < 2)
    return refuse(positions, node, "needs other positions than a rank has");
  if (positions->axis == AXIS_CP)
    return refuse(positions, node,
                  "with a window, documents or operands of other positions has no form over a rank's positions");
  const int heads = node->kind->ranks.apart - 1;
  return refuse(
      positions, node,
      arena_printf(positions->program->arena,
                   "has %lld heads of queries and %lld of keys, and each rank takes as many whole heads of both",
                   (long long)q.dim[heads], (long long)node->inputs[1]->shape.dim[heads]));
}

/* The entry's inputs are there as a whole, for each rank to take its part. */
static struct placement at_hand(const struct positions *positions, const struct value *value) {
  const bool given = value->kind == VALUE_INPUT && value->region == positions->program->graph->entry;
  return given ? whole : *placement_of(positions, value);
}

static bool converts(struct placement from, struct placement to, bool apart) {
  if (placement_equal(from, to)) return true;
  if (to.form != PLACED_SPLIT || to.blocks > 1) return false;
  return from.form == PLACED_WHOLE || (apart && from.form == PLACED_SPLIT && from.blocks == 1);
}

static bool check_mean(const struct positions *positions, const struct node *node) {
  const struct job *job = positions->program->job;
  if (!node->kind->index.ignores || job->accumulation.normalize == NORMALIZE_TOKENS) return true;
  if (!target_occurs(job, node_int(node, "ignore"))) return true;
  return refuse(positions, node,
                "leaves targets out, of which ranks may have different numbers: set "
                "accumulation.normalize: tokens");
}

static bool check_node(const struct positions *positions, const struct node *node) {
  struct placed *placed = &positions->nodes[node->id];
  if (!place_node(positions, node, placed)) return refuse_node(positions, node);
  for (int i = 0; i < node->n_inputs; i++)
    if (!converts(at_hand(positions, node->inputs[i]), placed->operands[i], node->kind->ranks.apart > 0))
      return refuse_node(positions, node);
  for (int i = 1; i < node->n_outputs && has_split(node, placed); i++)
    if (value_is_used(node->region, node->outputs[i], NULL)) return refuse_node(positions, node);
  return placed->back.form != PLACED_MEAN || check_mean(positions, node);
}

static bool check_call(const struct positions *positions, const struct node *node) {
  const struct call *call = node->call;
  for (int i = 0; i < node->n_inputs; i++) {
    const struct value *formal = call->callee->inputs.items[i];
    const bool carried = call->count > 1 && call->carry[i] >= 0;
    if (!converts(at_hand(positions, node->inputs[i]), *placement_of(positions, formal), false) ||
        (carried && !placement_equal(*placement_of(positions, formal),
                                     *placement_of(positions, call->callee->results.items[call->carry[i]]))))
      return refuse_node(positions, node);
    positions->nodes[node->id].operands[i] = *placement_of(positions, formal);
  }
  return true;
}

static bool check(const struct positions *positions) {
  const struct graph *graph = positions->program->graph;
  for (int r = graph->n_regions - 1; r >= 0; r--)
    for (int i = 0; i < graph->regions[r]->nodes.count; i++) {
      const struct node *node = graph->regions[r]->nodes.items[i];
      if (!(node->call != NULL ? check_call(positions, node) : check_node(positions, node))) return false;
    }
  for (int i = 0; i < graph->entry->results.count; i++) {
    const struct value *result = graph->entry->results.items[i];
    if (placement_of(positions, result)->form == PLACED_SPLIT && result->producer != NULL)
      return refuse(positions, result->producer,
                    "gives what the model returns, of which a rank has its positions alone");
  }
  return true;
}

/* ---- The graph of one rank ---- */

static void cut(const struct positions *positions, struct value *value, struct placement placement) {
  value->shape = placement_part(placement, value->shape, positions->ranks);
}

/* x as another placement has it, at the end of the region at hand. */
static struct value *convert(const struct positions *positions, struct value *x, struct placement from,
                             struct placement to) {
  if (from.form == PLACED_SPLIT)
    return op_all_to_all(positions->builder, x, positions->axis, positions->ranks, to.dim, from.dim);
  return op_exchange_parts(positions->builder, "part_of", x,
                           (struct op_parts){.axis = positions->axis,
                                             .ranks = positions->ranks,
                                             .dim = to.dim,
                                             .blocks = to.blocks,
                                             .partial = true,
                                             .balanced = to.balanced});
}

static void name_after(const struct positions *positions, struct value *value, const char *name, const char *end) {
  if (name != NULL) value->name = arena_printf(positions->program->arena, "%s_%s", name, end);
}

/* A value as one of its uses needed it. */
struct converted {
  struct value *from, *to;
  struct placement placement;
};
struct conversion {
  const struct positions *positions;
  struct {
    struct converted *items;
    int count, capacity;
  } made;
};

static struct value *as_needed(struct conversion *conversion, struct value *x, struct placement needed) {
  const struct positions *positions = conversion->positions;
  const struct placement from = at_hand(positions, x);
  if (placement_equal(from, needed)) return x;
  for (int i = 0; i < conversion->made.count; i++) {
    const struct converted *made = &conversion->made.items[i];
    if (made->from == x && placement_equal(made->placement, needed)) return made->to;
  }
  struct converted made = {x, convert(positions, x, from, needed), needed};
  name_after(positions, made.to, x->name, from.form == PLACED_SPLIT ? "sequences" : "part");
  ARENA_PUSH(positions->program->arena, conversion->made, made);
  return made.to;
}

static void replace_in(const struct node_list *nodes, int first, const struct region *region, const struct value *old,
                       struct value *now) {
  for (int k = first; k < nodes->count; k++)
    for (int j = 0; j < nodes->items[k]->n_inputs; j++)
      if (nodes->items[k]->inputs[j] == old) nodes->items[k]->inputs[j] = now;
  for (int k = 0; k < region->results.count; k++)
    if (region->results.items[k] == old) region->results.items[k] = now;
}

/* The operation's own rule must find the shape that the placement gives. */
static void cut_outputs(const struct positions *positions, struct node *node, const struct placed *placed) {
  for (int i = 0; i < node->n_outputs && node->call != NULL; i++)
    cut(positions, node->outputs[i], *placement_of(positions, node->outputs[i]));
  if (node->call != NULL || !has_split(node, placed)) return;
  cut(positions, node->outputs[0], placed->operands[node->n_inputs]);
  bool fits = op_shorten(positions->program->arena, node, placed->operands, positions->ranks, (int)positions->axis);
  assert(fits);
  (void)fits;
}

/* What stands for node `at`. */
static void use_gathered(const struct positions *positions, const struct node_list *nodes, int at,
                         struct region *region) {
  const struct node *node = nodes->items[at];
  struct value *result =
      node->kind->ranks.over_positions(positions->builder, node, positions->ranks, (int64_t)positions->axis);
  *placement_of(positions, result) = positions->nodes[node->id].back;
  result->name = node->outputs[0]->name;
  replace_in(nodes, at + 1, region, node->outputs[0], result);
}

/* The nodes of a region again, over parts, with what makes these before them. */
static void divide_region(const struct positions *positions, struct region *region) {
  const struct node_list nodes = region->nodes;
  struct conversion conversion = {.positions = positions};
  region->nodes = (struct node_list){0};
  builder_enter(positions->builder, region);
  for (int i = 0; i < nodes.count; i++) {
    struct node *node = nodes.items[i];
    const struct placed *placed = &positions->nodes[node->id];
    const struct placement made = placed->operands[node->n_inputs];
    builder_at(positions->builder, node->where);
    for (int k = 0; k < node->n_inputs; k++)
      node->inputs[k] = as_needed(&conversion, node->inputs[k], placed->operands[k]);
    if (placed->gathers) {
      use_gathered(positions, &nodes, i, region);
      continue;
    }
    region_append(positions->program->graph, region, node);
    if (node->n_outputs == 0) continue;
    cut_outputs(positions, node, placed);
    if (node->call != NULL || placement_equal(made, placed->back)) continue;
    struct value *result = convert(positions, node->outputs[0], made, placed->back);
    *placement_of(positions, result) = placed->back;
    result->name = node->outputs[0]->name;
    name_after(positions, node->outputs[0], result->name, "sequences");
    replace_in(&nodes, i + 1, region, node->outputs[0], result);
  }
  builder_leave(positions->builder);
  name_values(positions->program->arena, region);
}

/* The entry's inputs of the positions of each sample. */
static bool seed(const struct positions *positions) {
  const struct region *entry = positions->program->graph->entry;
  const struct value *tokens = entry->inputs.count > 0 ? entry->inputs.items[0] : NULL;
  const struct location where = job_where(positions->program->job, key_of(positions));
  if (tokens == NULL || tokens->shape.rank != 2 || tokens->dtype != DTYPE_INT32) {
    diag_error(positions->diags, where, "'%s' divides sequences of tokens, and the model takes none",
               key_of(positions));
    diag_help(positions->diags, "leave it out, and let all ranks be parallelism.dp_replicate or dp_shard");
    return false;
  }
  for (int i = 0; i < entry->inputs.count; i++) {
    const struct value *input = entry->inputs.items[i];
    if (!shape_equal(input->shape, tokens->shape)) continue;
    *placement_of(positions, input) = placement_split(1, 1);
    placement_of(positions, input)->balanced = positions->axis == AXIS_CP;
  }
  const int64_t parts = (positions->axis == AXIS_CP ? 2 : 1) * positions->ranks; /* each rank has two of them */
  if (tokens->shape.dim[1] % parts == 0) return true;
  diag_error(positions->diags, where, "'%s' is %lld, and the %lld positions of a sequence have no %lld equal parts",
             key_of(positions), (long long)positions->ranks, (long long)tokens->shape.dim[1], (long long)parts);
  diag_help(positions->diags, "let data.sequence_length be a multiple of %lld", (long long)parts);
  return false;
}

static void open_tables(struct positions *positions) {
  const struct graph *graph = positions->program->graph;
  struct arena *arena = positions->program->arena;
  size_t most = (size_t)graph->next_value + 1; /* and what converts: two outputs for each operand of each node */
  positions->nodes = arena_alloc(arena, ((size_t)graph->next_node + 1) * sizeof *positions->nodes);
  for (int r = 0; r < graph->n_regions; r++)
    for (int i = 0; i < graph->regions[r]->nodes.count; i++) {
      const struct node *node = graph->regions[r]->nodes.items[i];
      const size_t operands = (size_t)node->n_inputs + 1;
      most += 2 * operands + (node->kind->ranks.over_positions != NULL ? 16 * (size_t)positions->ranks + 64 : 0);
      positions->nodes[node->id].operands = arena_alloc(arena, operands * sizeof(struct placement));
    }
  positions->values = arena_alloc(arena, most * sizeof *positions->values);
}

bool divide_positions(struct program *program, struct builder *builder, struct diagnostics *diags) {
  const struct graph *graph = program->graph;
  struct positions positions = {.program = program, .builder = builder, .diags = diags};
  positions.axis = program->job->parallelism.axes[AXIS_CP] > 1 ? AXIS_CP : AXIS_SP;
  positions.ranks = program->kind == PROGRAM_TRAIN ? program->job->parallelism.axes[positions.axis] : 1;
  if (positions.ranks <= 1) return true;
  open_tables(&positions);
  if (!seed(&positions)) return false;
  spread(&positions);
  if (!check(&positions)) return false;
  for (int r = 0; r < graph->n_regions; r++)
    for (int i = 0; i < graph->regions[r]->inputs.count && graph->regions[r] != graph->entry; i++)
      cut(&positions, graph->regions[r]->inputs.items[i],
          *placement_of(&positions, graph->regions[r]->inputs.items[i]));
  for (int r = 0; r < graph->n_regions; r++) divide_region(&positions, graph->regions[r]);
  return true;
}
