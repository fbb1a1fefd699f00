#include "gen/plan/graph/uses.h"

#include "gen/ir/op.h"

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

bool is_used_before(const struct region *region, const struct value *value, int position) {
  for (int i = 0; i < position; i++)
    for (int k = 0; k < region->nodes.items[i]->n_inputs; k++)
      if (region->nodes.items[i]->inputs[k] == value) return true;
  return false;
}

bool goes_to_loops(const struct region *region, const struct value *value) {
  for (int i = 0; i < region->nodes.count; i++) {
    const struct node *node = region->nodes.items[i];
    for (int k = 0; k < node->n_inputs; k++) {
      if (node->inputs[k] != value) continue;
      if (node->kind->class == OP_ELEMENTWISE) return true;
      if (node->kind->class == OP_VIEW && goes_to_loops(region, node->outputs[0])) return true;
    }
  }
  return false;
}
