#include "gen/plan/graph/sequence_sharding.h"

#include "gen/ir/op.h"

static const struct sequence_sharding whole = {.positions = {.form = PLACED_WHOLE}};

struct sequence_sharding *sharding_of(const struct positions *positions, const struct value *value) {
  return &positions->values[value->id];
}

struct sequence_sharding sharding_at_hand(const struct positions *positions, const struct value *value) {
  return positions->given[value->id] ? whole : *sharding_of(positions, value);
}

bool is_sharded_at_all(struct sequence_sharding sharding) {
  const enum placement_form form = sharding.positions.form;
  return form == PLACED_SPLIT || form == PLACED_SORTED || sharding.heads > 0;
}

bool sharding_equal(const struct positions *positions, struct sequence_sharding a, struct sequence_sharding b) {
  if (a.heads != b.heads) return false;
  return (a.heads > 0 && positions->keys.ranks == 1) || placement_equal(a.positions, b.positions);
}

struct sequence_sharding sharding_of_input(const struct positions *positions) {
  struct sequence_sharding sharding = {.positions = placement_split(1, 1)};
  sharding.positions.balanced = positions->keys.ranks > 1;
  return sharding;
}

void open_divided(struct positions *positions) {
  const struct graph *graph = positions->program->graph;
  struct arena *arena = positions->program->arena;
  positions->nodes = arena_alloc(arena, ((size_t)graph->next_node + 1) * sizeof *positions->nodes);
  for (int r = 0; r < graph->n_regions; r++)
    for (int i = 0; i < graph->regions[r]->nodes.count; i++) {
      const struct node *node = graph->regions[r]->nodes.items[i];
      const size_t operands = (size_t)node->n_inputs + 1;
      positions->nodes[node->id].operands = arena_alloc(arena, operands * sizeof(struct sequence_sharding));
    }
  positions->values = arena_alloc(arena, ((size_t)graph->next_value + 1) * sizeof *positions->values);
  positions->given = arena_alloc(arena, ((size_t)graph->next_value + 1) * sizeof *positions->given);
  for (int i = 0; i < graph->entry->inputs.count; i++) positions->given[graph->entry->inputs.items[i]->id] = true;
}

/* ---- What a node needs and gives ---- */

static bool is_ring(const struct positions *positions) {
  return positions->program->job->parallelism.cp_comm == CP_COMM_RING;
}

/* Numbers of batches: what is linear in means over a rank's positions is such a mean. */
static bool place_means(const struct positions *positions, const struct node *node,
                        struct sequence_sharding *operands) {
  struct mean inputs[10] = {0};
  for (int i = 0; i < node->n_inputs && i < 10; i++) {
    operands[i] = *sharding_of(positions, node->inputs[i]);
    if (is_sharded_at_all(operands[i])) return false;
    inputs[i].form = operands[i].positions.form == PLACED_MEAN ? MEAN_FIXED : MEAN_SAME;
  }
  const bool preserved = node->kind->class == OP_VIEW || node->kind->types.converts;
  operands[node->n_inputs].positions = (struct placement){.form = PLACED_MEAN};
  if (node->kind->evaluation.mean == NULL) return preserved;
  return node->kind->evaluation.mean(node, inputs).form == MEAN_FIXED;
}

/* The rule of a node's operands, where that of operand `seed` is set, to a split among so many ranks. */
static struct placement *rule_of(const struct positions *positions, const struct node *node, int seed,
                                 struct placement split, int64_t ranks) {
  const size_t operands = (size_t)node->n_inputs + 1;
  struct placement *placements = arena_alloc(positions->program->arena, operands * sizeof *placements);
  for (int i = 0; i <= node->n_inputs; i++) placements[i] = whole.positions;
  placements[seed] = split;
  return op_place(node, seed, ranks, placements) ? placements : NULL;
}

/* A node of which ranks along sp have parts along dimension `dim` of operand `seed`: without ranks along cp it has
 * whole sequences. */
static bool place_heads(const struct positions *positions, const struct node *node, int seed, int dim,
                        struct sequence_sharding *operands) {
  const struct placement *rule = rule_of(positions, node, seed, placement_split(dim, 1), positions->heads.ranks);
  if (rule == NULL || (positions->keys.ranks > 1 && node->kind->ranks.shorten != NULL)) return false;
  for (int i = 0; i <= node->n_inputs; i++) {
    const struct placement own = operands[i].positions;
    if (rule[i].form == PLACED_PARTIAL || rule[i].blocks > 1) return false;
    const bool clashes = rule[i].form == PLACED_SPLIT ? own.dim == rule[i].dim : positions->keys.ranks > 1;
    if (own.form == PLACED_SPLIT && clashes) return false;
  }
  for (int i = 0; i <= node->n_inputs; i++) {
    operands[i].heads = rule[i].form == PLACED_SPLIT ? rule[i].dim + 1 : 0;
    if (operands[i].heads == 0) operands[i] = whole;
  }
  return true;
}

/* Whether an operand has one row along the dimension of the positions, where that is not all there are. */
static bool is_one_row(const struct node *node, int index) {
  const int dim = node->kind->ranks.divided_dim;
  const struct shape shape = op_operand(node, index)->shape;
  return dim < shape.rank && shape.dim[dim] == 1 && node->outputs[0]->shape.dim[dim] > 1;
}

/* Where a node has its positions of all operands, of which it gathers some. What has one row for all positions is
 * whole; what goes with output 0's positions, row by row, may come whole. */
static bool place_gathering(const struct positions *positions, const struct node *node, struct placed *placed) {
  const struct placement own = placed->back.positions;
  placed->gathers = node->kind->ranks.gathers(node, is_ring(positions)) && own.form == PLACED_SPLIT &&
                    own.dim == node->kind->ranks.divided_dim && own.blocks == 1;
  for (int i = 0; i < node->n_inputs; i++) {
    const struct placement has = sharding_of(positions, node->inputs[i])->positions, to = placed->operands[i].positions;
    const bool cut = has.form == PLACED_WHOLE && op_along(node, own.dim, i) >= 0;
    placed->gathers = placed->gathers && (placement_equal(has, to) || cut || is_one_row(node, i));
  }
  return placed->gathers;
}

/* Where a node that has no parts of its positions has parts of another dimension, or gathers what it needs. */
static bool place_mixing(const struct positions *positions, const struct node *node, struct placed *placed) {
  if (node->kind->ranks.over_positions == NULL) return false;
  placed->back.positions = sharding_of(positions, node->inputs[0])->positions;
  for (int i = 0; i <= node->n_inputs; i++)
    placed->operands[i] = op_operand(node, i)->dtype != DTYPE_INT32 && !is_one_row(node, i) ? placed->back : whole;
  if (positions->keys.ranks > 1 && !place_gathering(positions, node, placed)) return false;
  const int heads = node->kind->ranks.divided_dim - 1;
  return positions->heads.ranks == 1 || place_heads(positions, node, node->n_inputs, heads, placed->operands);
}

/* Whether an operand must be whole of which ranks have parts. */
static bool mixes(const struct positions *positions, const struct node *node,
                  const struct sequence_sharding *operands) {
  if (node->kind->ranks.divided_dim == 0) return false;
  for (int i = 0; i < node->n_inputs; i++)
    if (is_sharded_at_all(sharding_at_hand(positions, node->inputs[i])) && operands[i].positions.form == PLACED_WHOLE)
      return true;
  return false;
}

/* The first input of which ranks along sp have parts of another dimension than that of the positions, if that is so of
 * all inputs that they divide; -1: none. */
static int seed_of_heads(const struct positions *positions, const struct node *node) {
  int first = -1;
  for (int i = node->n_inputs - 1; i >= 0; i--) {
    const struct sequence_sharding own = sharding_at_hand(positions, node->inputs[i]);
    if (own.heads > 0) first = i;
    if (own.heads == 0 && is_sharded_at_all(own)) return -1;
  }
  return first;
}

/* A node that works on parts of its positions; sums of them are those of the ranks' sums. What mixes positions then
 * takes heads along sp, and what it needs whole is gathered along cp; what follows has heads for as long as it can. */
static bool place_parts(const struct positions *positions, const struct node *node, struct placed *placed) {
  struct sequence_sharding *operands = placed->operands;
  const int seed = seed_of_heads(positions, node), last = node->n_inputs;
  if (mixes(positions, node, operands)) {
    if (positions->keys.ranks > 1 && is_ring(positions)) return false;
    const int heads = node->kind->ranks.divided_dim - 1;
    if (positions->heads.ranks > 1 &&
        (heads >= node->outputs[0]->shape.rank - 2 || !place_heads(positions, node, last, heads, operands)))
      return false;
  } else if (seed >= 0) {
    place_heads(positions, node, seed, sharding_of(positions, node->inputs[seed])->heads - 1, operands);
  }
  placed->back = operands[last];
  if (placed->back.positions.form != PLACED_PARTIAL) return true;
  placed->back = whole;
  return seed < 0 && node->kind->ranks.over_parts == NULL;
}

/* The first input of a form; -1: none has it. */
static int first_input(const struct positions *positions, const struct node *node, enum placement_form form) {
  for (int i = 0; i < node->n_inputs; i++)
    if (sharding_of(positions, node->inputs[i])->positions.form == form) return i;
  return -1;
}

/* The input whose positions give those of all operands: rows that an operation takes of a table give the table's part,
 * and its part not which rows. -1: each rank has all of them. */
static int seed_of(const struct positions *positions, const struct node *node) {
  const int sorted = first_input(positions, node, PLACED_SORTED);
  return sorted >= 0 ? sorted : first_input(positions, node, PLACED_SPLIT);
}

static bool place_node(const struct positions *positions, const struct node *node, struct placed *placed) {
  struct sequence_sharding *operands = placed->operands;
  const int seed = seed_of(positions, node);
  const bool mean = first_input(positions, node, PLACED_MEAN) >= 0;
  *placed = (struct placed){.operands = operands};
  for (int i = 0; i <= node->n_inputs; i++) operands[i] = whole;
  if (mean && !place_means(positions, node, operands)) return false;
  if (seed >= 0 && !mean) {
    const bool both = positions->keys.ranks > 1 && positions->heads.ranks > 1;
    if (node->kind->ranks.part_axis != NULL && both) return false;
    const struct placement own = sharding_of(positions, node->inputs[seed])->positions;
    const struct placement *rule = rule_of(positions, node, seed, own, positions->ranks);
    if (rule == NULL) return place_mixing(positions, node, placed);
    for (int i = 0; i <= node->n_inputs; i++) operands[i].positions = rule[i];
    return place_parts(positions, node, placed);
  }
  placed->back = operands[node->n_inputs];
  return placed->back.positions.form != PLACED_PARTIAL;
}

/* Integers that follow from the entry's inputs: each rank makes the whole of them, whatever positions they mix. */
static bool place_given(const struct positions *positions, const struct node *node, struct placed *placed) {
  bool given = false;
  if (node->n_outputs != 1 || node->outputs[0]->dtype != DTYPE_INT32) return false;
  for (int i = 0; i < node->n_inputs; i++) {
    const struct value *input = node->inputs[i];
    if (is_sharded_at_all(sharding_at_hand(positions, input)) || input->dtype != DTYPE_INT32) return false;
    given = given || positions->given[input->id];
  }
  for (int i = 0; i <= node->n_inputs && given; i++) placed->operands[i] = whole;
  placed->back = whole;
  return given;
}

bool place_sharded(const struct positions *positions, const struct node *node, struct placed *placed) {
  return place_node(positions, node, placed) || place_given(positions, node, placed);
}

/* ---- Forward ---- */

static void set(const struct positions *positions, const struct value *value, struct sequence_sharding sharding,
                bool *changed) {
  struct sequence_sharding *known = sharding_of(positions, value);
  if (known->positions.form != PLACED_WHOLE || sharding.positions.form == PLACED_WHOLE) return;
  *known = sharding;
  *changed = true;
}

/* Whether each rank makes the whole of a node's output from what is given. */
static bool gives(const struct positions *positions, const struct node *node) {
  struct placed placed = {.operands = positions->nodes[node->id].operands};
  for (int i = 0; i <= node->n_inputs; i++)
    if (is_sharded_at_all(placed.operands[i])) return false;
  return place_given(positions, node, &placed);
}

static void spread_node(const struct positions *positions, const struct node *node, bool *changed) {
  struct placed *placed = &positions->nodes[node->id];
  if (!place_sharded(positions, node, placed) || node->n_outputs == 0) return;
  set(positions, node->outputs[0], placed->back, changed);
  if (!gives(positions, node)) return;
  positions->given[node->outputs[0]->id] = true;
  if (shape_equal(node->outputs[0]->shape, positions->tokens))
    set(positions, node->outputs[0], sharding_of_input(positions), changed);
}

static struct placement rows_of(const struct positions *positions, const struct value *value) {
  return sharding_of(positions, value)->positions;
}

struct sequence_sharding sharding_entering(const struct positions *positions, const struct node *node, int input) {
  const struct placement own = rows_of(positions, node->inputs[input]);
  struct sequence_sharding sharding = {.positions = own};
  for (int i = input; i >= 0 && own.form == PLACED_SORTED; i--)
    if (rows_of(positions, node->inputs[i]).order == own.order)
      sharding.positions.order = node->call->callee->inputs.items[i]->id;
  return sharding;
}

/* What a call gives has the positions that its region gives: rows in an order of what it got, or in one of its own. */
static struct sequence_sharding result_of(const struct positions *positions, const struct node *node, int index) {
  const struct region *callee = node->call->callee;
  const struct placement made = rows_of(positions, callee->results.items[index]);
  struct sequence_sharding sharding = {.positions = made};
  if (made.form != PLACED_SORTED) return sharding;
  for (int i = index; i >= 0; i--)
    if (rows_of(positions, callee->results.items[i]).order == made.order)
      sharding.positions.order = node->outputs[i]->id;
  for (int i = 0; i < node->n_inputs; i++) {
    const struct placement given = rows_of(positions, node->inputs[i]);
    if (callee->inputs.items[i]->id != made.order) continue;
    if (given.form != PLACED_SORTED) return whole; /* the region has the rows of another call */
    sharding.positions.order = given.order;
  }
  return sharding;
}

static struct sequence_sharding carried_of(const struct positions *positions, const struct region *region, int result) {
  return (struct sequence_sharding){.positions = rows_of(positions, region->results.items[result])};
}

static void spread_region(const struct positions *positions, const struct region *region, bool *changed) {
  for (int n = 0; n < region->nodes.count; n++) {
    const struct node *node = region->nodes.items[n];
    const struct call *call = node->call;
    if (call == NULL) {
      spread_node(positions, node, changed);
      continue;
    }
    const struct value_list *formals = &call->callee->inputs;
    for (int i = 0; i < node->n_inputs; i++)
      set(positions, formals->items[i], sharding_entering(positions, node, i), changed);
    spread_region(positions, call->callee, changed);
    for (int i = 0; i < node->n_inputs; i++)
      if (call->count > 1 && call->carry[i] >= 0)
        set(positions, formals->items[i], carried_of(positions, call->callee, call->carry[i]), changed);
    for (int i = 0; i < node->n_outputs; i++) set(positions, node->outputs[i], result_of(positions, node, i), changed);
  }
}

void spread_divided(const struct positions *positions) {
  for (bool changed = true; changed;) {
    changed = false;
    spread_region(positions, positions->program->graph->entry, &changed);
  }
}
