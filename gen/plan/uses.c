#include "gen/plan/uses.h"

static void count_inputs(const struct node *node, int *uses) {
  if (node->body.count > 0) {
    for (int i = 0; i < node->body.count; i++) count_inputs(node->body.items[i], uses);
    return;
  }
  for (int i = 0; i < node->n_inputs; i++) uses[node->inputs[i]->id]++;
}

int *count_uses(struct arena *arena, const struct graph *graph) {
  int *uses = arena_alloc(arena, ((size_t)graph->next_value + 1) * sizeof(int));
  for (int r = 0; r < graph->n_regions; r++) {
    const struct region *region = graph->regions[r];
    for (int i = 0; i < region->nodes.count; i++) count_inputs(region->nodes.items[i], uses);
    for (int i = 0; i < region->results.count; i++) uses[region->results.items[i]->id]++;
    for (int i = 0; i < region->gradients.count; i++) uses[region->gradients.items[i].value->id]++;
  }
  return uses;
}
