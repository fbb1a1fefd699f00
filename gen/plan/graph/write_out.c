#include "gen/plan/graph/write_out.h"

#include "gen/ir/region.h"
#include "gen/plan/graph/rebuild.h"
#include "gen/program/target.h"

/* Whether another kind, whose keys go round the ranks, will replace it, of which the device has a kernel. */
static bool goes_round(const struct program *program, const struct node *node) {
  const bool ring = program->job->parallelism.cp_comm == CP_COMM_RING && mesh_ranks(program, SHARDED_KEYS) > 1;
  return ring && program->kind == PROGRAM_TRAIN && node->kind->ranks.gathers != NULL &&
         node->kind->ranks.gathers(node, true);
}

static bool is_written_out(const struct program *program, const struct node *node, enum write_out_moment moment) {
  if (node->call != NULL || node->kind->written_out == NULL) return false;
  if (node->kind->lacks_kernel != NULL)
    return (moment == AFTER_DECODING || program->kind != PROGRAM_GENERATE) && node->kind->lacks_kernel(node);
  if (program->kind == PROGRAM_GENERATE) return true;
  return op_kind_is_among(node->kind, program->target->kernels.lacks) &&
         (moment != AS_READ || !goes_round(program, node));
}

static struct value *take(struct rebuild *rebuild, const struct node *node, int input) {
  return rebuild_stand(rebuild, node->inputs[input]);
}

static void append(struct rebuild *rebuild, struct region *region, struct node *node) {
  const enum write_out_moment *moment = rebuild->context;
  if (!is_written_out(rebuild->program, node, *moment)) {
    region_append(rebuild->program->graph, region, node);
    return;
  }
  struct value *made = node->kind->written_out(rebuild->builder, node);
  made->name = node->outputs[0]->name;
  rebuild->replacements[node->outputs[0]->id] = made;
}

static struct value *give(struct rebuild *rebuild, const struct region *region, int result) {
  return rebuild_stand(rebuild, region->results.items[result]);
}

static bool has_any(const struct program *program, const struct region *region, enum write_out_moment moment) {
  for (int i = 0; i < region->nodes.count; i++)
    if (is_written_out(program, region->nodes.items[i], moment)) return true;
  return false;
}

void write_out(struct program *program, struct builder *builder, enum write_out_moment moment) {
  const struct graph *graph = program->graph;
  struct rebuild rebuild = {program, builder, NULL, &moment, take, append, give};
  for (int r = 0; r < graph->n_regions; r++)
    if (has_any(program, graph->regions[r], moment)) rebuild_region(&rebuild, graph->regions[r]);
}
