#include "gen/plan/graph/library.h"

#include "gen/ir/op.h"
#include "gen/ir/region.h"
#include "gen/program/target.h"

static bool leaves(const struct job *job, enum library_part part) {
  const enum device_kernels kernels[] = {[LIBRARY_NONE] = KERNELS_OWN,
                                         [LIBRARY_ATTENTION] = job->devices.attention,
                                         [LIBRARY_CONVOLUTION] = job->devices.convolution};
  return kernels[part] == KERNELS_LIBRARY;
}

static bool has_part(const struct program *program, const struct node *node) {
  return program->target->library.parts >> node->kind->library.part & 1;
}

bool library_has(const struct program *program, const struct node *node) {
  return has_part(program, node) && leaves(program->job, node->kind->library.part) && node->kind->library.offers(node);
}

bool library_computes(const struct program *program, const struct kernel *kernel) {
  const struct node *node = kernel->node;
  for (int i = 0; i < node->n_outputs; i++)
    if (kernel->outputs[i].accumulate && !node->kind->library.accumulates) return false;
  return library_has(program, node);
}

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
