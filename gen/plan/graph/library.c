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

void library_drop_workspaces(struct program *program) {
  const struct graph *graph = program->graph;
  for (int r = 0; r < graph->n_regions; r++)
    for (int i = 0; i < graph->regions[r]->nodes.count; i++) {
      struct node *node = graph->regions[r]->nodes.items[i];
      if (node->call == NULL && program->target->library.no_workspace >> node->kind->library.part & 1)
        drop_workspaces(node);
    }
}
