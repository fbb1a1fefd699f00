#include "gen/plan/graph/partition.h"

#include "gen/ir/op.h"
#include "gen/ir/region.h"
#include "gen/ops/support/nodes.h"
#include "gen/plan/graph/expert_parallel.h"
#include "gen/plan/graph/partial_gradients.h"
#include "gen/plan/graph/placements.h"
#include "gen/plan/graph/rebuild.h"
#include "gen/plan/graph/residual.h"
#include "gen/plan/graph/tensor_plan.h"
#include "gen/plan/graph/unsharded.h"

struct partition {
  struct program *program;
  struct placements placements;
  enum axis axis;
  struct placement **nodes;   /* by node id: of its operands; NULL: all are whole */
  struct placement **results; /* by region id: of its results */
  struct shape *given;        /* of what the entry gives, whole */
  const bool *partial;        /* by value id: a parameter whose gradient is added up over the ranks at a step's end */
  int64_t *wholes;            /* by node id: the extent that ranks divide, of its first input that they do */
};

/* ---- Shapes ---- */

static void cut(const struct partition *partition, struct value *value) {
  value->placement = placement_of(&partition->placements, value);
  value->shape = placement_part(value->placement, value->shape, partition->placements.ranks);
}

static void cut_parameters(const struct partition *partition, struct region *region) {
  for (int i = 0; i < region->parameters.count; i++) {
    struct parameter *p = &region->parameters.items[i];
    const struct shape whole = p->value->shape;
    p->placement = placement_of(&partition->placements, p->value);
    p->axis = (int)partition->axis;
    cut(partition, p->value);
    if (p->placement.form == PLACED_SPLIT)
      p->placement.padding =
          p->value->shape.dim[p->placement.dim] * partition->placements.ranks - whole.dim[p->placement.dim];
    if (p->bits16 != NULL) cut(partition, p->bits16);
    p->shape = p->value->shape;
  }
}

/* What is whole after a sum is so before it; what ranks gather is in parts before that. */
static void cut_node(const struct partition *partition, const struct node *node) {
  const struct placement *operands = partition->nodes[node->id];
  if (operands != NULL && operands[node->n_inputs].form == PLACED_PARTIAL) return;
  if (operands != NULL && partition->placements.gathers[node->id]) {
    struct value *part = node->outputs[0];
    part->placement = operands[node->n_inputs];
    part->shape = placement_part(part->placement, part->shape, partition->placements.ranks);
    return;
  }
  for (int i = 0; i < node->n_outputs && (i == 0 || node->call != NULL); i++) cut(partition, node->outputs[i]);
}

static void cut_region(const struct partition *partition, struct region *region) {
  cut_parameters(partition, region);
  for (int i = 0; i < region->inputs.count; i++) cut(partition, region->inputs.items[i]);
  for (int i = 0; i < region->nodes.count; i++) cut_node(partition, region->nodes.items[i]);
}

/* What the entry gives is whole. */
static void note_results(struct partition *partition) {
  const struct graph *graph = partition->program->graph;
  const struct value_list given = graph->entry->results;
  struct arena *arena = partition->program->arena;
  partition->given = arena_alloc(arena, ((size_t)given.count + 1) * sizeof *partition->given);
  for (int i = 0; i < given.count; i++) partition->given[i] = given.items[i]->shape;
  partition->results = arena_alloc(arena, ((size_t)graph->n_regions + 1) * sizeof *partition->results);
  for (int r = 0; r < graph->n_regions; r++) {
    const struct value_list results = graph->regions[r]->results;
    partition->results[r] = arena_alloc(arena, ((size_t)results.count + 1) * sizeof **partition->results);
    for (int i = 0; i < results.count && graph->regions[r] != graph->entry; i++)
      partition->results[r][i] = placement_of(&partition->placements, results.items[i]);
  }
}

static void note_placements(struct partition *partition) {
  const struct graph *graph = partition->program->graph;
  struct arena *arena = partition->program->arena;
  partition->nodes = arena_alloc(arena, ((size_t)graph->next_node + 1) * sizeof *partition->nodes);
  partition->wholes = arena_alloc(arena, ((size_t)graph->next_node + 1) * sizeof *partition->wholes);
  for (int r = 0; r < graph->n_regions; r++)
    for (int i = 0; i < graph->regions[r]->nodes.count; i++) {
      const struct node *node = graph->regions[r]->nodes.items[i];
      struct placement *operands = arena_alloc(arena, ((size_t)node->n_inputs + 1) * sizeof *operands);
      if (node->call == NULL && node_placements(&partition->placements, node, operands))
        partition->nodes[node->id] = operands;
      for (int k = node->n_inputs - 1; k >= 0 && partition->nodes[node->id] != NULL; k--)
        if (operands[k].form == PLACED_SPLIT) partition->wholes[node->id] = node->inputs[k]->shape.dim[operands[k].dim];
    }
}

/* ---- Collectives ---- */

/* A region whose nodes get collectives between them. */
struct insertion {
  struct builder *builder;
  const struct partition *partition;
  /* By value id, of a value as the region had it: what it is where ranks divide what they do with it, and its whole.
   * NULL: nothing yet. */
  struct value **sharded, **gathered;
  bool *used_whole; /* by value id: a split value that is used whole where ranks do not divide what they do with it */
};

/* A collective of x, at the end of the current region. */
static struct value *collective(const struct insertion *insertion, const char *kind, struct value *x) {
  return op_exchange_whole(insertion->builder, kind, x, (int64_t)insertion->partition->axis);
}

/* The same between parts along a dimension and the whole. */
static struct value *parts_collective(const struct insertion *insertion, const char *kind, struct value *x,
                                      struct placement split, bool partial) {
  return op_exchange_parts(insertion->builder, kind, x,
                           (struct op_parts){.axis = insertion->partition->axis,
                                             .ranks = insertion->partition->placements.ranks,
                                             .dim = split.dim,
                                             .blocks = split.blocks,
                                             .partial = partial,
                                             .remade = true});
}

/* What all ranks have, and each takes for its part of the work, has a gradient that is a sum over them. */
static struct value *replicated(struct insertion *insertion, const struct value *value, struct value *x) {
  struct value **made = &insertion->sharded[value->id];
  if (!value->differentiable || insertion->partition->partial[value->id]) return x;
  if (*made == NULL) *made = collective(insertion, "replicate", x);
  return *made;
}

/* The whole of a value that is split. Where some use it alike on all ranks its gradient is the same on all of them,
 * with what others of them do as a part of the work added up before. */
static struct value *gathered(struct insertion *insertion, const struct value *value, struct value *x, bool divides) {
  const struct placement split = placement_of(&insertion->partition->placements, value);
  struct value **made = &insertion->gathered[value->id];
  bool partial = !insertion->used_whole[value->id];
  if (*made == NULL) *made = parts_collective(insertion, "all_gather", x, split, partial);
  return divides && !partial ? replicated(insertion, value, *made) : *made;
}

/* What a rank has of a value of the region where it is to be placed otherwise. */
static struct value *placed(struct rebuild *rebuild, struct value *value, struct placement wanted, bool divides) {
  struct insertion *insertion = rebuild->context;
  const struct placement has = placement_of(&insertion->partition->placements, value);
  struct value *x = rebuild_stand(rebuild, value);
  if (wanted.form == PLACED_WHOLE && has.form == PLACED_WHOLE) return divides ? replicated(insertion, value, x) : x;
  if (placement_equal(has, wanted)) return x;
  if (has.form == PLACED_SPLIT) x = gathered(insertion, value, x, divides && wanted.form == PLACED_WHOLE);
  return wanted.form == PLACED_SPLIT ? parts_collective(insertion, "part_of", x, wanted, false) : x;
}

/* The placement that a node needs of an input. */
static struct placement needed(const struct partition *partition, const struct node *node, int input) {
  const struct placement *operands = partition->nodes[node->id];
  if (node->call != NULL) return placement_of(&partition->placements, node->call->callee->inputs.items[input]);
  return operands != NULL ? operands[input] : (struct placement){.form = PLACED_WHOLE};
}

static void note_use(struct insertion *insertion, const struct value *value, struct placement wanted, bool divides) {
  const struct placement has = placement_of(&insertion->partition->placements, value);
  if (has.form == PLACED_SPLIT && !placement_equal(has, wanted) && !(divides && wanted.form == PLACED_WHOLE))
    insertion->used_whole[value->id] = true;
}

static void note_uses(struct insertion *insertion, const struct region *region) {
  const struct partition *partition = insertion->partition;
  for (int i = 0; i < region->nodes.count; i++) {
    const struct node *node = region->nodes.items[i];
    for (int k = 0; k < node->n_inputs; k++)
      note_use(insertion, node->inputs[k], needed(partition, node, k), partition->nodes[node->id] != NULL);
  }
  for (int i = 0; i < region->results.count; i++)
    note_use(insertion, region->results.items[i], partition->results[region->id][i], false);
}

/* The sum of what a node gives as its part of it, by the name of the whole; a rank's part of the sum where that is to
 * are split. */
static struct value *sum_of(const struct insertion *insertion, struct value *part, struct placement has) {
  struct value *sum = has.form == PLACED_SPLIT ? parts_collective(insertion, "reduce_scatter", part, has, false)
                                               : collective(insertion, "all_reduce", part);
  sum->name = part->name;
  sum->placement = has;
  part->placement = (struct placement){.form = PLACED_PARTIAL};
  part->name = arena_printf(insertion->partition->program->arena, "%s_part", sum->name);
  return sum;
}

/* The parts that ranks have, gathered, by the name of the whole. */
static struct value *whole_of(const struct insertion *insertion, struct value *part, struct placement split) {
  struct value *whole = parts_collective(insertion, "all_gather", part, split, false);
  whole->name = part->name;
  part->name = arena_printf(insertion->partition->program->arena, "%s_part", whole->name);
  return whole;
}

/* What a rank does instead of a node that must know its part, by the names of its outputs; the node itself where it
 * need not. */
static const struct node *over_parts(struct rebuild *rebuild, struct region *region, struct node *node,
                                     const struct placement *operands) {
  const struct partition *partition = ((struct insertion *)rebuild->context)->partition;
  if (node->kind->ranks.over_parts == NULL || operands[node->n_inputs].form == PLACED_SPLIT) {
    region_append(rebuild->program->graph, region, node);
    return node;
  }
  const struct node *own = node->kind->ranks.over_parts(rebuild->builder, node, partition->wholes[node->id],
                                                        partition->placements.ranks, (int64_t)partition->axis);
  for (int i = 0; i < node->n_outputs; i++) {
    own->outputs[i]->name = node->outputs[i]->name;
    rebuild->replacements[node->outputs[i]->id] = own->outputs[i];
  }
  return own;
}

static struct value *take(struct rebuild *rebuild, const struct node *node, int input) {
  const struct partition *partition = ((struct insertion *)rebuild->context)->partition;
  return placed(rebuild, node->inputs[input], needed(partition, node, input), partition->nodes[node->id] != NULL);
}

/* Lets a node do a rank's part of the work. */
static void append(struct rebuild *rebuild, struct region *region, struct node *node) {
  const struct insertion *insertion = rebuild->context;
  const struct partition *partition = insertion->partition;
  const struct placement *operands = partition->nodes[node->id];
  if (operands == NULL) {
    region_append(rebuild->program->graph, region, node);
    return;
  }
  rebuild_shorten(rebuild, node, operands, partition->placements.ranks, partition->axis);
  const struct node *own = over_parts(rebuild, region, node, operands);
  const struct placement given = operands[node->n_inputs];
  if (given.form == PLACED_PARTIAL)
    rebuild->replacements[node->outputs[0]->id] =
        sum_of(insertion, own->outputs[0], placement_of(&partition->placements, node->outputs[0]));
  else if (partition->placements.gathers[node->id])
    rebuild->replacements[node->outputs[0]->id] = whole_of(insertion, own->outputs[0], given);
}

/* Without the padding of parts where the entry gives it. */
static struct value *give(struct rebuild *rebuild, const struct region *region, int result) {
  const struct partition *partition = ((struct insertion *)rebuild->context)->partition;
  struct value *value = region->results.items[result];
  const struct placement has = placement_of(&partition->placements, value);
  struct value *x = placed(rebuild, value, partition->results[region->id][result], false);
  if (region != partition->program->graph->entry || has.form != PLACED_SPLIT) return x;
  int64_t extent = partition->given[result].dim[has.dim];
  return x->shape.dim[has.dim] > extent ? op_slice(rebuild->builder, x, has.dim, 0, extent) : x;
}

/* The nodes of a region again, with collectives between them. */
static void insert_collectives(struct builder *builder, const struct partition *partition, struct region *region) {
  struct arena *arena = partition->program->arena;
  size_t count = (size_t)partition->program->graph->next_value + 1;
  struct insertion insertion = {.builder = builder, .partition = partition};
  insertion.sharded = arena_alloc(arena, count * sizeof *insertion.sharded);
  insertion.gathered = arena_alloc(arena, count * sizeof *insertion.gathered);
  insertion.used_whole = arena_alloc(arena, count * sizeof *insertion.used_whole);
  note_uses(&insertion, region);
  struct rebuild rebuild = {partition->program, builder, NULL, &insertion, take, append, give};
  rebuild_region(&rebuild, region);
}

/* ---- What cannot be ---- */

static void report_unsharded(const struct partition *partition, struct diagnostics *diags) {
  const struct node *needs = partition->placements.needs;
  diag_error(diags, job_where(partition->program->job, "parallelism.tp"),
             "the model has no two matmuls in a row, and no vocabulary, that %lld ranks could divide",
             (long long)partition->placements.ranks);
  if (needs != NULL)
    diag_note(diags, needs->where, "'%s' needs a tensor whole that ranks would shard for another operation",
              needs->kind->name);
  diag_help(diags, "leave it out, or let heads and widths be multiples of it");
}

/* Decoding has a position at a time, which no ranks divide. */
static bool divide_residual(struct partition *partition, struct diagnostics *diags) {
  struct residual residual = {&partition->placements, partition->nodes, partition->results, NULL};
  const char *key = "parallelism.megatron.sequence_parallelism";
  bool divides = partition->program->job->parallelism.splits_sequence && partition->program->kind != PROGRAM_GENERATE;
  if (!divides || split_residual(&residual)) return true;
  const struct shape shape = residual.uneven->outputs[0]->shape;
  diag_error(diags, job_where(partition->program->job, key),
             "%lld ranks of parallelism.tp cannot have equal parts of %lld positions",
             (long long)partition->placements.ranks, (long long)shape.dim[shape.rank - 2]);
  diag_note(diags, residual.uneven->where, "this matmul has so many rows");
  diag_help(diags, "let data.sequence_length be a multiple of parallelism.tp, or leave '%s' out", key);
  return false;
}

/* Gradients that ranks shard, average or factor leave as the backward completes them. */
static const bool *partial_gradients(const struct partition *partition) {
  const struct program *program = partition->program;
  const struct job *job = program->job;
  if (program->mesh.shards == AXES && job->parallelism.local_steps == 0 && !job_exchanges_means(job))
    return mark_partial_gradients(&partition->placements, partition->nodes);
  return arena_alloc(program->arena, ((size_t)program->graph->next_value + 1) * sizeof(bool));
}

/* Along the axis whose ranks take the same batches. */
static bool divide_tensors(struct program *program, struct builder *builder, struct diagnostics *diags) {
  struct partition partition = {.program = program, .axis = axis_sharding(program, SHARDED_TENSORS)};
  const int64_t ranks = ranks_along(program, partition.axis);
  if (ranks <= 1) return true;
  open_placements(&partition.placements, program, ranks, mesh_ranks(program, SHARDED_HEADS));
  if (!place_by_plan(&partition.placements, diags)) return false;
  find_placements(&partition.placements);
  note_unsharded(&partition.placements);
  if (partition.placements.n_split == 0) {
    report_unsharded(&partition, diags);
    return false;
  }
  note_placements(&partition);
  note_results(&partition);
  if (!divide_residual(&partition, diags)) return false;
  if (!check_plan_of_positions(&partition.placements, partition.nodes, diags)) return false;
  partition.partial = partial_gradients(&partition);
  for (int r = 0; r < program->graph->n_regions; r++) cut_region(&partition, program->graph->regions[r]);
  for (int r = 0; r < program->graph->n_regions; r++)
    insert_collectives(builder, &partition, program->graph->regions[r]);
  return true;
}

bool partition(struct program *program, struct builder *builder, struct diagnostics *diags) {
  const struct job *job = program->job;
  const enum axis axis = axis_sharding(program, SHARDED_EXPERTS);
  if (!divide_tensors(program, builder, diags)) return false;
  return axis == AXES || plan_expert_parallel(program, builder, axis, ranks_along(program, axis),
                                              job_where(job, "parallelism.ep"), diags);
}
