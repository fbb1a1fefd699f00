#include "gen/plan/graph/partition.h"

#include <assert.h>

#include "gen/ir/builder.h"
#include "gen/ir/names.h"
#include "gen/ir/op.h"
#include "gen/ir/region.h"
#include "gen/plan/graph/deal_groups.h"
#include "gen/plan/graph/placements.h"

struct partition {
  struct program *program;
  struct placements placements;
  enum axis axis;
  struct placement **nodes; /* by node id: of its operands; NULL: all are whole */
  int64_t *wholes;          /* by node id: the extent that ranks divide, of its first input that they do */
};

/* ---- Shapes ---- */

static void cut(const struct partition *partition, struct value *value) {
  value->shape = placement_part(placement_of(&partition->placements, value), value->shape, partition->placements.ranks);
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

/* The operation's own rule must find the shape that the placement gives. */
static void cut_node(const struct partition *partition, struct node *node) {
  const struct placement *operands = partition->nodes[node->id];
  for (int i = 0; i < node->n_outputs && (i == 0 || node->call != NULL); i++) cut(partition, node->outputs[i]);
  bool fits = operands == NULL || op_shorten(partition->program->arena, node, operands, partition->placements.ranks);
  assert(fits);
  (void)fits;
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

static void cut_region(const struct partition *partition, struct region *region) {
  cut_parameters(partition, region);
  for (int i = 0; i < region->inputs.count; i++) cut(partition, region->inputs.items[i]);
  for (int i = 0; i < region->nodes.count; i++) cut_node(partition, region->nodes.items[i]);
}

/* ---- Collectives ---- */

/* A collective of x, at the end of the region at hand. */
static struct value *collective(struct builder *builder, const struct partition *partition, const char *kind,
                                struct value *x) {
  struct attribute axis = attribute_int("axis", (int64_t)partition->axis);
  return builder_op(builder, kind, &x, 1, &axis, 1);
}

/* What all ranks have, and each takes for its part of the work, has a gradient that is a sum over them. `made` is, by
 * value id, what stands for a value already. */
static void replicate_inputs(struct builder *builder, const struct partition *partition, struct node *node,
                             struct value **made) {
  const struct placement *operands = partition->nodes[node->id];
  for (int i = 0; i < node->n_inputs; i++) {
    struct value *x = node->inputs[i];
    if (operands[i].form != PLACED_WHOLE || !x->differentiable) continue;
    if (made[x->id] == NULL) made[x->id] = collective(builder, partition, "replicate", x);
    node->inputs[i] = made[x->id];
  }
}

/* The sum of what a node gives as its part of it, by the name of the whole. */
static struct value *sum_of(struct builder *builder, const struct partition *partition, struct value *part) {
  struct value *sum = collective(builder, partition, "all_reduce", part);
  sum->name = part->name;
  part->name = arena_printf(partition->program->arena, "%s_part", sum->name);
  return sum;
}

/* Lets what uses a part of a sum use the sum. */
static void use_sum(struct region *region, struct value *sum) {
  struct value *part = sum->producer->inputs[0];
  region_replace(region, part, sum);
  sum->producer->inputs[0] = part;
}

/* What a rank does in place of a node that must know its part, by the names of its outputs; NULL: the node itself. */
static struct node *over_parts(struct builder *builder, const struct partition *partition, const struct node *node) {
  const struct placement *operands = partition->nodes[node->id];
  if (node->kind->ranks.over_parts == NULL || operands == NULL || operands[node->n_inputs].form == PLACED_SPLIT)
    return NULL;
  struct node *own = node->kind->ranks.over_parts(builder, node, partition->wholes[node->id],
                                                  partition->placements.ranks, (int64_t)partition->axis);
  for (int i = 0; i < node->n_outputs; i++) own->outputs[i]->name = node->outputs[i]->name;
  return own;
}

/* The nodes of a region again, with collectives between them. */
static void insert_collectives(struct builder *builder, const struct partition *partition, struct region *region) {
  const struct node_list nodes = region->nodes;
  struct graph *graph = partition->program->graph;
  struct value **made = arena_alloc(graph->arena, ((size_t)graph->next_value + 1) * sizeof *made);
  struct value **sums = arena_alloc(graph->arena, ((size_t)nodes.count + 1) * sizeof *sums);
  struct node **owns = arena_alloc(graph->arena, ((size_t)nodes.count + 1) * sizeof *owns);
  int n_sums = 0;
  region->nodes = (struct node_list){0};
  builder_enter(builder, region);
  for (int i = 0; i < nodes.count; i++) {
    struct node *node = nodes.items[i];
    const struct placement *operands = partition->nodes[node->id];
    builder_at(builder, node->where);
    if (operands != NULL) replicate_inputs(builder, partition, node, made);
    owns[i] = over_parts(builder, partition, node);
    if (owns[i] == NULL) region_append(graph, region, node);
    if (operands != NULL && operands[node->n_inputs].form == PLACED_PARTIAL)
      sums[n_sums++] = sum_of(builder, partition, (owns[i] != NULL ? owns[i] : node)->outputs[0]);
  }
  for (int i = 0; i < nodes.count; i++)
    for (int k = 0; owns[i] != NULL && k < nodes.items[i]->n_outputs; k++)
      region_replace(region, nodes.items[i]->outputs[k], owns[i]->outputs[k]);
  for (int i = 0; i < n_sums; i++) use_sum(region, sums[i]);
  builder_leave(builder);
  name_values(graph->arena, region);
}

/* Along the axis whose ranks take the same batches. */
static bool divide_tensors(struct program *program, struct builder *builder, struct diagnostics *diags) {
  struct partition partition = {.program = program, .axis = AXIS_TP};
  int64_t ranks = program->job->parallelism.axes[AXIS_TP];
  if (ranks <= 1) return true;
  find_placements(&partition.placements, program, ranks);
  if (partition.placements.divided == 0) {
    diag_error(diags, job_where(program->job, "parallelism.tp"),
               "the model has no two matmuls in a row, and no vocabulary, that %lld ranks could divide",
               (long long)ranks);
    if (partition.placements.needs != NULL)
      diag_note(diags, partition.placements.needs->where,
                "'%s' needs whole what ranks would divide for another operation",
                partition.placements.needs->kind->name);
    diag_help(diags, "leave it out, or let heads and widths be multiples of it");
    return false;
  }
  note_placements(&partition);
  for (int r = 0; r < program->graph->n_regions; r++) cut_region(&partition, program->graph->regions[r]);
  for (int r = 0; r < program->graph->n_regions; r++)
    insert_collectives(builder, &partition, program->graph->regions[r]);
  return true;
}

bool partition(struct program *program, struct builder *builder, struct diagnostics *diags) {
  const struct job *job = program->job;
  int64_t owners = job->parallelism.axes[AXIS_EP];
  if (program->kind != PROGRAM_TRAIN) return true;
  if (!divide_tensors(program, builder, diags)) return false;
  return owners <= 1 || deal_groups(program, builder, AXIS_EP, owners, job_where(job, "parallelism.ep"), diags);
}
