#include "gen/plan/prune.h"

#include "gen/plan/uses.h"

static bool is_needed(const struct node *node, const int *uses) {
  if (node->call != NULL) return true;
  for (int i = 0; i < node->n_outputs; i++)
    if (uses[node->outputs[i]->id] > 0) return true;
  return false;
}

/* From the last node to the first, so that what only a removed node needed goes too. */
static void prune_region(struct region *region, int *uses) {
  int end = region->nodes.count, kept = end;
  for (int i = end - 1; i >= 0; i--) {
    struct node *node = region->nodes.items[i];
    if (is_needed(node, uses)) {
      region->nodes.items[--kept] = node;
      continue;
    }
    for (int k = 0; k < node->n_inputs; k++) uses[node->inputs[k]->id]--;
  }
  for (int i = kept; i < end; i++) region->nodes.items[i - kept] = region->nodes.items[i];
  region->nodes.count = end - kept;
}

void prune(struct graph *graph) {
  int *uses = count_uses(graph->arena, graph);
  /* Backward regions stand behind the forward regions whose values they use. */
  for (int r = graph->n_regions - 1; r >= 0; r--) prune_region(graph->regions[r], uses);
}
