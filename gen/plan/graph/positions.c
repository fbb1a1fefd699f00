#include "gen/plan/graph/positions.h"

#include "gen/ir/op.h"
#include "gen/ir/region.h"
#include "gen/ops/support/nodes.h"
#include "gen/plan/graph/normalize.h"
#include "gen/plan/graph/rebuild.h"

/* The placements that a node's operands must have, its inputs and then output 0, and that with which output 0 goes on.
 */
struct placed {
  struct placement *operands, back;
  bool gathers; /* another operation stands for it, over a rank's positions and those of all */
};

/* An axis of the mesh. */
struct along {
  enum axis axis;
  int64_t ranks; /* 1: it divides nothing */
};

/* Placements of values are found forward from the entry's inputs; a value is whole until something that it is made of
 * is split. */
struct positions {
  struct program *program;
  struct builder *builder;
  struct diagnostics *diags;
  struct along keys;        /* ranks that gather keys and values */
  struct along heads;       /* ranks that exchange positions for heads: each has a range of what it has along `keys` */
  int64_t ranks;            /* along both */
  struct placement *values; /* by value id */
  struct placed *nodes;     /* by node id, in the end */
};

static const struct placement whole = {.form = PLACED_WHOLE};

static struct placement *placement_of(const struct positions *positions, const struct value *value) {
  return &positions->values[value->id];
}

/* The one axis that divides positions, or the first of two. */
static struct along first_of(const struct positions *positions) {
  return positions->keys.ranks > 1 ? positions->keys : positions->heads;
}

static bool is_ring(const struct positions *positions) {
  return positions->program->job->parallelism.cp_comm == CP_COMM_RING;
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
  placed->gathers = node->kind->ranks.gathers(node, is_ring(positions)) && placed->back.form == PLACED_SPLIT &&
                    placed->back.dim == node->kind->ranks.apart && placed->back.blocks == 1;
  for (int i = 0; i < node->n_inputs; i++) {
    placed->operands[i] = node->inputs[i]->dtype != DTYPE_INT32 ? placed->back : whole;
    placed->gathers =
        placed->gathers && placement_equal(*placement_of(positions, node->inputs[i]), placed->operands[i]);
  }
  placed->operands[node->n_inputs] = placed->back;
  return placed->gathers;
}

/* Where a node has parts of another dimension than that of the positions. */
static bool place_apart(const struct positions *positions, const struct node *node, struct placed *placed) {
  if (node->kind->ranks.apart == 0) return false;
  placed->back = *placement_of(positions, node->inputs[0]);
  if (positions->keys.ranks > 1 && !place_gathering(positions, node, placed)) return false;
  if (positions->heads.ranks == 1) return true;
  for (int i = 0; i < node->n_inputs; i++) placed->operands[i] = whole;
  placed->operands[node->n_inputs] = placement_split(node->kind->ranks.apart - 1, 1);
  return op_place(node, node->n_inputs, positions->heads.ranks, placed->operands);
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
    if (node->kind->ranks.part_axis != NULL && first_of(positions).ranks != positions->ranks) return false;
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
  return arena_printf(positions->program->arena, "parallelism.%s", job_axis_names[first_of(positions).axis]);
}

static const char *both_of(const struct positions *positions) {
  if (positions->keys.ranks == positions->ranks || positions->heads.ranks == positions->ranks) return key_of(positions);
  return arena_printf(positions->program->arena, "parallelism.%s' times 'parallelism.%s",
                      job_axis_names[positions->keys.axis], job_axis_names[positions->heads.axis]);
}

static bool refuse(const struct positions *positions, const struct node *node, const char *why) {
  diag_error(positions->diags, node->where, "'%s' %s", node->kind->name, why);
  diag_note(positions->diags, job_where(positions->program->job, key_of(positions)),
            "'%s' divides each sequence among %lld ranks by this", key_of(positions),
            (long long)first_of(positions).ranks);
  diag_help(positions->diags, "leave it out, or give the model attention and operations on each position alone");
  return false;
}

static bool refuse_node(const struct positions *positions, const struct node *node) {
  const struct shape q = node->inputs[0]->shape;
  if (node->kind->kernel.random && first_of(positions).ranks != positions->ranks)
    return refuse(positions, node, "draws random numbers by a rank's position along one axis, and two divide these");
  if (node->kind->kernel.random)
    return refuse(positions, node, "draws four random numbers at a time, and a rank's positions in a row have others");
  if (node->kind->ranks.apart == 0 || node->n_inputs < 2)
    return refuse(positions, node, "needs other positions than a rank has");
  const int heads = node->kind->ranks.apart - 1;
  const bool fits =
      q.dim[heads] % positions->heads.ranks == 0 && node->inputs[1]->shape.dim[heads] % positions->heads.ranks == 0;
  if (positions->keys.ranks > 1 && fits)
    return refuse(positions, node,
                  "with a window, documents or operands of other positions has no form over a rank's positions");
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

/* A rank's part of what all ranks have, at the end of the region at hand. */
static struct value *part_of(const struct positions *positions, struct value *x, struct placement to) {
  const struct along axes[] = {positions->keys, positions->heads};
  for (int i = 0; i < 2; i++)
    if (axes[i].ranks > 1)
      x = op_exchange_parts(positions->builder, "part_of", x,
                            (struct op_parts){.axis = axes[i].axis,
                                              .ranks = axes[i].ranks,
                                              .dim = to.dim,
                                              .blocks = to.blocks,
                                              .partial = true,
                                              .balanced = to.balanced && i == 0});
  return x;
}

/* x as another placement has it. */
static struct value *convert(const struct positions *positions, struct value *x, struct placement from,
                             struct placement to) {
  if (from.form != PLACED_SPLIT) return part_of(positions, x, to);
  return op_all_to_all(positions->builder, x, positions->heads.axis, positions->heads.ranks, to.dim, from.dim);
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

static struct value *take(struct rebuild *rebuild, const struct node *node, int input) {
  struct conversion *conversion = rebuild->context;
  const struct positions *positions = conversion->positions;
  struct value *value = node->inputs[input], *x = rebuild_stand(rebuild, value);
  const struct placement from = at_hand(positions, value), needed = positions->nodes[node->id].operands[input];
  if (placement_equal(from, needed)) return x;
  for (int i = 0; i < conversion->made.count; i++) {
    const struct converted *made = &conversion->made.items[i];
    if (made->from == value && placement_equal(made->placement, needed)) return made->to;
  }
  struct converted made = {value, convert(positions, x, from, needed), needed};
  name_after(positions, made.to, x->name, from.form == PLACED_SPLIT ? "sequences" : "part");
  ARENA_PUSH(positions->program->arena, conversion->made, made);
  return made.to;
}

static void cut_outputs(const struct rebuild *rebuild, const struct positions *positions, struct node *node) {
  const struct placed *placed = &positions->nodes[node->id];
  for (int i = 0; i < node->n_outputs && node->call != NULL; i++)
    cut(positions, node->outputs[i], *placement_of(positions, node->outputs[i]));
  if (node->call != NULL || !has_split(node, placed)) return;
  cut(positions, node->outputs[0], placed->operands[node->n_inputs]);
  rebuild_shorten(rebuild, node, placed->operands, positions->ranks, first_of(positions).axis);
}

/* The node over its parts, or what stands for it, and where that has other parts, an exchange of these. */
static void append(struct rebuild *rebuild, struct region *region, struct node *node) {
  const struct positions *positions = ((struct conversion *)rebuild->context)->positions;
  const struct placed *placed = &positions->nodes[node->id];
  const struct placement made = placed->operands[node->n_inputs];
  if (!placed->gathers) {
    region_append(rebuild->program->graph, region, node);
    if (node->n_outputs > 0) cut_outputs(rebuild, positions, node);
    if (node->n_outputs == 0 || node->call != NULL || placement_equal(made, placed->back)) return;
  }
  struct value *result = node->outputs[0];
  if (placed->gathers)
    result = node->kind->ranks.over_positions(rebuild->builder, node, positions->keys.ranks,
                                              (int64_t)positions->keys.axis, is_ring(positions));
  const char *name = node->outputs[0]->name;
  if (!placement_equal(made, placed->back)) {
    name_after(positions, result, name, "sequences");
    result = convert(positions, result, made, placed->back);
  }
  result->name = name;
  rebuild->stands[node->outputs[0]->id] = result;
}

static struct value *give(struct rebuild *rebuild, const struct region *region, int result) {
  return rebuild_stand(rebuild, region->results.items[result]);
}

static void divide_region(const struct positions *positions, struct region *region) {
  struct conversion conversion = {.positions = positions};
  struct rebuild rebuild = {positions->program, positions->builder, NULL, &conversion, take, append, give};
  rebuild_region(&rebuild, region);
}

/* Whether only operations that mix positions take a value, which they then need whole. */
static bool is_mixed_alone(const struct value *value, const struct region *region) {
  for (int i = 0; i < region->nodes.count; i++) {
    const struct node *node = region->nodes.items[i];
    for (int k = 0; k < node->n_inputs; k++) {
      if (node->inputs[k] != value) continue;
      bool mixed = node->call != NULL ? is_mixed_alone(node->call->callee->inputs.items[k], node->call->callee)
                                      : node->kind->ranks.apart > 0;
      if (!mixed) return false;
    }
  }
  return true;
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
    if (!shape_equal(input->shape, tokens->shape) || is_mixed_alone(input, entry)) continue;
    *placement_of(positions, input) = placement_split(1, 1);
    placement_of(positions, input)->balanced = positions->keys.ranks > 1;
  }
  const int64_t parts = (positions->keys.ranks > 1 ? 2 : 1) * positions->ranks; /* each rank has two of them */
  if (tokens->shape.dim[1] % parts == 0) return true;
  diag_error(positions->diags, where, "'%s' is %lld, and the %lld positions of a sequence have no %lld equal parts",
             both_of(positions), (long long)positions->ranks, (long long)tokens->shape.dim[1], (long long)parts);
  diag_help(positions->diags, "let data.sequence_length be a multiple of %lld", (long long)parts);
  return false;
}

static void open_tables(struct positions *positions) {
  const struct graph *graph = positions->program->graph;
  struct arena *arena = positions->program->arena;
  positions->nodes = arena_alloc(arena, ((size_t)graph->next_node + 1) * sizeof *positions->nodes);
  for (int r = 0; r < graph->n_regions; r++)
    for (int i = 0; i < graph->regions[r]->nodes.count; i++) {
      const struct node *node = graph->regions[r]->nodes.items[i];
      const size_t operands = (size_t)node->n_inputs + 1;
      positions->nodes[node->id].operands = arena_alloc(arena, operands * sizeof(struct placement));
    }
  positions->values = arena_alloc(arena, ((size_t)graph->next_value + 1) * sizeof *positions->values);
}

bool divide_positions(struct program *program, struct builder *builder, struct diagnostics *diags) {
  const struct graph *graph = program->graph;
  struct positions positions = {.program = program, .builder = builder, .diags = diags};
  positions.keys = (struct along){AXIS_CP, program->job->parallelism.axes[AXIS_CP]};
  positions.heads = (struct along){AXIS_SP, program->job->parallelism.axes[AXIS_SP]};
  positions.ranks = positions.keys.ranks * positions.heads.ranks;
  if (positions.ranks <= 1 || program->kind != PROGRAM_TRAIN) return true;
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
