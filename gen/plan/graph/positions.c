#include "gen/plan/graph/positions.h"

#include "gen/ir/op.h"
#include "gen/ir/region.h"
#include "gen/ops/support/nodes.h"
#include "gen/plan/graph/normalize.h"
#include "gen/plan/graph/rebuild.h"
#include "gen/plan/graph/sequence_sharding.h"

/* The one axis that divides positions, or the first of two. */
static struct along first_of(const struct positions *positions) {
  return positions->keys.ranks > 1 ? positions->keys : positions->heads;
}

/* ---- What cannot be sharded ---- */

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
  const char *needs = node->kind->ranks.needs != NULL ? node->kind->ranks.needs(node) : NULL;
  if (node->kind->ranks.divided_dim == 0 || node->n_inputs < 2 || q.rank != 4)
    return refuse(positions, node, needs != NULL ? needs : "needs other positions than a rank has");
  if (node->kind->ranks.over_positions == NULL)
    return refuse(positions, node,
                  positions->program->job->parallelism.cp_comm == CP_COMM_RING
                      ? "gathers the keys of all positions: no parallelism.cp_comm: ring has a form of it"
                      : "mixes positions, and ranks have no equal parts of its heads");
  const int heads = node->kind->ranks.divided_dim - 1;
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

/* `mixes`: for an operation that mixes positions. */
static bool converts(const struct positions *positions, struct sequence_sharding from, struct sequence_sharding to,
                     bool mixes) {
  if (sharding_equal(positions, from, to)) return true;
  if (!is_sharded_at_all(from))
    return from.positions.form == PLACED_WHOLE && to.positions.form != PLACED_SORTED && is_sharded_at_all(to) &&
           to.positions.blocks <= 1;
  if (from.positions.form != PLACED_SPLIT || from.positions.blocks > 1) return false;
  const bool gathered = to.positions.form == PLACED_WHOLE;
  if (!gathered && !placement_equal(from.positions, to.positions)) return false;
  if (to.heads == 0) return !gathered || (mixes && from.heads == 0);
  return mixes && (from.heads == 0 || from.heads == to.heads);
}

static bool check_mean(const struct positions *positions, const struct node *node) {
  const struct job *job = positions->program->job;
  if (!node->kind->index.ignores || job->accumulation.normalize == NORMALIZE_TOKENS) return true;
  if (!target_occurs(job, node_int(node, "ignore"))) return true;
  return refuse(positions, node,
                "leaves targets out, of which ranks may have different numbers: set "
                "accumulation.normalize: tokens");
}

static bool has_sharded_operand(const struct node *node, const struct placed *placed) {
  for (int i = 0; i <= node->n_inputs; i++)
    if (is_sharded_at_all(placed->operands[i])) return true;
  return false;
}

static bool check_node(const struct positions *positions, const struct node *node) {
  struct placed *placed = &positions->nodes[node->id];
  if (!place_sharded(positions, node, placed)) return refuse_node(positions, node);
  for (int i = 0; i < node->n_inputs; i++)
    if (!converts(positions, sharding_at_hand(positions, node->inputs[i]), placed->operands[i],
                  node->kind->ranks.divided_dim > 0))
      return refuse_node(positions, node);
  for (int i = 1; i < node->n_outputs && !node->kind->ranks.others_whole && has_sharded_operand(node, placed); i++)
    if (value_is_used(node->region, node->outputs[i], NULL)) return refuse_node(positions, node);
  return placed->back.positions.form != PLACED_MEAN || check_mean(positions, node);
}

static bool check_call(const struct positions *positions, const struct node *node) {
  const struct call *call = node->call;
  for (int i = 0; i < node->n_inputs; i++) {
    const struct value *formal = call->callee->inputs.items[i];
    const struct sequence_sharding own = *sharding_of(positions, formal);
    const bool carried = call->count > 1 && call->carry[i] >= 0, sorted = own.positions.form == PLACED_SORTED;
    const struct sequence_sharding given =
        sorted ? sharding_entering(positions, node, i) : sharding_at_hand(positions, node->inputs[i]);
    if (!converts(positions, given, own, false) || (sorted && carried) ||
        (carried && !placement_equal(own.positions,
                                     sharding_of(positions, call->callee->results.items[call->carry[i]])->positions)))
      return refuse_node(positions, node);
    positions->nodes[node->id].operands[i] = sorted ? *sharding_of(positions, node->inputs[i]) : own;
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
    if (is_sharded_at_all(*sharding_of(positions, result)) && result->producer != NULL)
      return refuse(positions, result->producer,
                    "gives what the model returns, of which a rank has its positions alone");
  }
  return true;
}

/* ---- The graph of one rank ---- */

static void cut(const struct positions *positions, struct value *value, struct sequence_sharding sharding) {
  const int64_t ranks = sharding.heads > 0 ? positions->keys.ranks : positions->ranks;
  value->shape = placement_part(sharding.positions, value->shape, ranks);
  if (sharding.heads > 0) value->shape.dim[sharding.heads - 1] /= positions->heads.ranks;
}

/* A rank's part along one axis of what all ranks have, at the end of the current region. */
static struct value *part_along(const struct positions *positions, struct value *x, struct along along, int dim,
                                bool balanced) {
  if (along.ranks == 1) return x;
  return op_exchange_parts(
      positions->builder, "part_of", x,
      (struct op_parts){
          .axis = along.axis, .ranks = along.ranks, .dim = dim, .blocks = 1, .partial = true, .balanced = balanced});
}

static struct value *part_of(const struct positions *positions, struct value *x, struct sequence_sharding to) {
  const struct placement own = to.positions;
  if (own.form == PLACED_SPLIT) x = part_along(positions, x, positions->keys, own.dim, own.balanced);
  if (to.heads > 0) return part_along(positions, x, positions->heads, to.heads - 1, false);
  return part_along(positions, x, positions->heads, own.dim, false);
}

/* The sum of what ranks have, with which each continues for its own positions. */
static struct value *sum_of(const struct positions *positions, struct value *x) {
  const struct along axes[] = {positions->keys, positions->heads};
  for (int i = 0; i < 2; i++) {
    if (axes[i].ranks == 1) continue;
    x = op_exchange_whole(positions->builder, "all_reduce", x, (int64_t)axes[i].axis);
    if (x->differentiable) x = op_exchange_whole(positions->builder, "replicate", x, (int64_t)axes[i].axis);
  }
  return x;
}

/* x as another division has it. */
static struct value *convert(const struct positions *positions, struct value *x, struct sequence_sharding from,
                             struct sequence_sharding to) {
  const struct along heads = positions->heads, keys = positions->keys;
  const int dim = from.positions.dim;
  if (from.positions.form == PLACED_PARTIAL) return sum_of(positions, x);
  if (!is_sharded_at_all(from)) return part_of(positions, x, to);
  if (from.heads == 0 && to.heads > 0)
    x = op_all_to_all(positions->builder, x, heads.axis, heads.ranks, to.heads - 1, dim);
  if (from.heads > 0 && to.heads == 0)
    x = op_all_to_all(positions->builder, x, heads.axis, heads.ranks, dim, from.heads - 1);
  if (to.positions.form != PLACED_WHOLE) return x;
  if (from.heads == 0 && to.heads == 0 && heads.ranks > 1)
    x = op_exchange_parts(
        positions->builder, "all_gather", x,
        (struct op_parts){.axis = heads.axis, .ranks = heads.ranks, .dim = dim, .blocks = 1, .partial = true});
  return keys.ranks > 1 ? op_gather_chunks(positions->builder, x, dim, keys.axis, keys.ranks) : x;
}

static void name_after(const struct positions *positions, struct value *value, const char *name, const char *end) {
  if (name != NULL) value->name = arena_printf(positions->program->arena, "%s_%s", name, end);
}

/* A value as one of its uses needed it. */
struct converted {
  struct value *from, *to;
  struct sequence_sharding sharding;
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
  const struct sequence_sharding from = sharding_at_hand(positions, value),
                                 needed = positions->nodes[node->id].operands[input];
  if (sharding_equal(positions, from, needed)) return x;
  for (int i = 0; i < conversion->made.count; i++) {
    const struct converted *made = &conversion->made.items[i];
    if (made->from == value && sharding_equal(positions, made->sharding, needed)) return made->to;
  }
  struct converted made = {value, convert(positions, x, from, needed), needed};
  name_after(positions, made.to, x->name, is_sharded_at_all(from) ? "sequences" : "part");
  ARENA_PUSH(positions->program->arena, conversion->made, made);
  return made.to;
}

/* What the rule of a node says of its operands, along the axis that divides them or, of two, the first. */
static void shorten(const struct rebuild *rebuild, const struct positions *positions, struct node *node) {
  const struct sequence_sharding *operands = positions->nodes[node->id].operands;
  const size_t count = (size_t)node->n_inputs + 1;
  const bool by_heads = operands[node->n_inputs].heads > 0;
  struct placement *placements = arena_alloc(positions->program->arena, count * sizeof *placements);
  for (int i = 0; i <= node->n_inputs; i++) {
    placements[i] = operands[i].positions;
    if (by_heads && positions->keys.ranks == 1)
      placements[i] =
          operands[i].heads > 0 ? placement_split(operands[i].heads - 1, 1) : (struct placement){.form = PLACED_WHOLE};
  }
  rebuild_shorten(rebuild, node, placements, by_heads ? first_of(positions).ranks : positions->ranks,
                  first_of(positions).axis);
}

static void cut_outputs(const struct rebuild *rebuild, const struct positions *positions, struct node *node) {
  const struct placed *placed = &positions->nodes[node->id];
  for (int i = 0; i < node->n_outputs && node->call != NULL; i++)
    cut(positions, node->outputs[i], *sharding_of(positions, node->outputs[i]));
  if (node->call != NULL || !has_sharded_operand(node, placed)) return;
  cut(positions, node->outputs[0], placed->operands[node->n_inputs]);
  shorten(rebuild, positions, node);
}

/* The node over its parts, or its replacement, and where that has other parts, an exchange of these. */
static void append(struct rebuild *rebuild, struct region *region, struct node *node) {
  const struct positions *positions = ((struct conversion *)rebuild->context)->positions;
  const struct placed *placed = &positions->nodes[node->id];
  const struct sequence_sharding made = placed->operands[node->n_inputs];
  if (!placed->gathers) {
    region_append(rebuild->program->graph, region, node);
    if (node->n_outputs > 0) cut_outputs(rebuild, positions, node);
    if (node->n_outputs == 0 || node->call != NULL || sharding_equal(positions, made, placed->back)) return;
  }
  struct value *result = node->outputs[0];
  if (placed->gathers)
    result =
        node->kind->ranks.over_positions(rebuild->builder, node, positions->keys.ranks, (int64_t)positions->keys.axis,
                                         positions->program->job->parallelism.cp_comm == CP_COMM_RING);
  const char *name = node->outputs[0]->name;
  if (!sharding_equal(positions, made, placed->back)) {
    name_after(positions, result, name, made.positions.form == PLACED_PARTIAL ? "part" : "sequences");
    result = convert(positions, result, made, placed->back);
  }
  result->name = name;
  rebuild->replacements[node->outputs[0]->id] = result;
}

static struct value *give(struct rebuild *rebuild, const struct region *region, int result) {
  const struct positions *positions = ((struct conversion *)rebuild->context)->positions;
  struct value *value = region->results.items[result], *x = rebuild_stand(rebuild, value);
  const struct sequence_sharding from = sharding_at_hand(positions, value);
  return from.heads > 0 ? convert(positions, x, from, (struct sequence_sharding){.positions = from.positions}) : x;
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
                                      : node->kind->ranks.divided_dim > 0;
      if (!mixed) return false;
    }
  }
  return true;
}

/* The entry's inputs of the positions of each sample. */
static bool seed(struct positions *positions) {
  const struct region *entry = positions->program->graph->entry;
  const struct value *tokens = entry->inputs.count > 0 ? entry->inputs.items[0] : NULL;
  const struct location where = job_where(positions->program->job, key_of(positions));
  if (tokens == NULL || tokens->shape.rank != 2 || tokens->dtype != DTYPE_INT32) {
    diag_error(positions->diags, where, "'%s' divides sequences of tokens, and the model takes none",
               key_of(positions));
    diag_help(positions->diags, "leave it out, and let all ranks be parallelism.dp_replicate or dp_shard");
    return false;
  }
  positions->tokens = tokens->shape;
  for (int i = 0; i < entry->inputs.count; i++) {
    const struct value *input = entry->inputs.items[i];
    if (!shape_equal(input->shape, tokens->shape) || is_mixed_alone(input, entry)) continue;
    *sharding_of(positions, input) = sharding_of_input(positions);
  }
  const int64_t parts = (positions->keys.ranks > 1 ? 2 : 1) * positions->ranks; /* each rank has two of them */
  if (tokens->shape.dim[1] % parts == 0) return true;
  diag_error(positions->diags, where, "'%s' is %lld, and the %lld positions of a sequence have no %lld equal parts",
             both_of(positions), (long long)positions->ranks, (long long)tokens->shape.dim[1], (long long)parts);
  diag_help(positions->diags, "let data.sequence_length be a multiple of %lld", (long long)parts);
  return false;
}

static struct along along(const struct program *program, enum sharded sharded) {
  return (struct along){axis_sharding(program, sharded), mesh_ranks(program, sharded)};
}

bool divide_positions(struct program *program, struct builder *builder, struct diagnostics *diags) {
  const struct graph *graph = program->graph;
  struct positions positions = {.program = program, .builder = builder, .diags = diags};
  positions.keys = along(program, SHARDED_KEYS);
  positions.heads = along(program, SHARDED_HEADS);
  positions.ranks = positions.keys.ranks * positions.heads.ranks;
  if (positions.ranks <= 1 || program->kind != PROGRAM_TRAIN) return true;
  open_divided(&positions);
  if (!seed(&positions)) return false;
  spread_divided(&positions);
  if (!check(&positions)) return false;
  for (int r = 0; r < graph->n_regions; r++)
    for (int i = 0; i < graph->regions[r]->inputs.count && graph->regions[r] != graph->entry; i++)
      cut(&positions, graph->regions[r]->inputs.items[i], *sharding_of(&positions, graph->regions[r]->inputs.items[i]));
  for (int r = 0; r < graph->n_regions; r++) divide_region(&positions, graph->regions[r]);
  return true;
}
