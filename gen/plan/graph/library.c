#include "gen/plan/graph/library.h"

#include "gen/ir/op.h"
#include "gen/ir/region.h"
#include "gen/program/target.h"

static void drop_workspaces(struct node *node) {
  int kept = 0;
  for (int i = 0; i < node->n_outputs; i++)
    if (!(node->kind->memory.workspace >> i & 1)) node->outputs[kept++] = node->outputs[i];
  node->n_outputs = kept;
  for (int i = 0; i < kept; i++) node->outputs[i]->index = i;
}

/* What ranks exchange in messages of as many rows as data decides needs none. */
static bool needs_none(const struct target *target, const struct node *node) {
  const struct op_kind *kind = node->kind;
  bool by_data = kind->ranks.exchanged != NULL && kind->ranks.exchanged(node).by_data;
  return target->library.no_workspace >> kind->library.part & 1 || (by_data && !target->ranks.fixed_sizes);
}

void library_drop_workspaces(struct program *program) {
  const struct graph *graph = program->graph;
  for (int r = 0; r < graph->n_regions; r++)
    for (int i = 0; i < graph->regions[r]->nodes.count; i++) {
      struct node *node = graph->regions[r]->nodes.items[i];
      if (node->call == NULL && needs_none(program->target, node)) drop_workspaces(node);
    }
}
