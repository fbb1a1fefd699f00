#include "gen/plan/graph/write_out.h"

#include "gen/ir/region.h"
#include "gen/plan/graph/rebuild.h"
#include "gen/program/target.h"

static bool is_written_out(const struct program *program, const struct node *node) {
  if (node->call != NULL || node->kind->written_out == NULL) return false;
  return program->kind == PROGRAM_GENERATE || op_kind_is_among(node->kind, program->target->kernels.lacks);
}

static struct value *take(struct rebuild *rebuild, const struct node *node, int input) {
  return rebuild_stand(rebuild, node->inputs[input]);
}

static void append(struct rebuild *rebuild, struct region *region, struct node *node) {
  if (!is_written_out(rebuild->program, node)) {
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

static bool has_any(const struct program *program, const struct region *region) {
  for (int i = 0; i < region->nodes.count; i++)
    if (is_written_out(program, region->nodes.items[i])) return true;
  return false;
}

void write_out(struct program *program, struct builder *builder) {
  const struct graph *graph = program->graph;
  struct rebuild rebuild = {program, builder, NULL, NULL, take, append, give};
  for (int r = 0; r < graph->n_regions; r++)
    if (has_any(program, graph->regions[r])) rebuild_region(&rebuild, graph->regions[r]);
}
