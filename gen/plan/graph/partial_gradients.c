#include "gen/plan/graph/partial_gradients.h"

struct uses {
  const struct placements *placements;
  struct placement *const *nodes;
  const struct value **roots; /* by id of a parameter's value or its copy: the first parameter of the name */
  bool *sharded, *otherwise;  /* by id of that: used by a node that ranks divide, or in another way */
};

static void find_roots(struct uses *uses, const struct region *region) {
  for (int i = 0; i < region->parameters.count; i++) {
    const struct parameter *p = &region->parameters.items[i];
    const struct value *root = first_of_name(uses->placements, p->value);
    uses->roots[p->value->id] = root;
    if (p->bits16 != NULL) uses->roots[p->bits16->id] = root;
  }
}

static void note(const struct uses *uses, const struct value *value, bool sharded) {
  const struct value *root = uses->roots[value->id];
  if (root != NULL) (sharded ? uses->sharded : uses->otherwise)[root->id] = true;
}

static void note_region(const struct uses *uses, const struct region *region) {
  for (int i = 0; i < region->nodes.count; i++) {
    const struct node *node = region->nodes.items[i];
    const struct placement *operands = uses->nodes[node->id];
    for (int k = 0; k < node->n_inputs; k++)
      note(uses, node->inputs[k], operands != NULL && operands[k].form == PLACED_WHOLE);
  }
  for (int i = 0; i < region->results.count; i++) note(uses, region->results.items[i], false);
}

const bool *mark_partial_gradients(const struct placements *placements, struct placement *const *nodes) {
  const struct graph *graph = placements->program->graph;
  struct arena *arena = graph->arena;
  size_t count = (size_t)graph->next_value + 1;
  struct uses uses = {.placements = placements, .nodes = nodes};
  uses.roots = arena_alloc(arena, count * sizeof *uses.roots);
  uses.sharded = arena_alloc(arena, count * sizeof *uses.sharded);
  uses.otherwise = arena_alloc(arena, count * sizeof *uses.otherwise);
  bool *partial = arena_alloc(arena, count * sizeof *partial);
  for (int r = 0; r < graph->n_regions; r++) find_roots(&uses, graph->regions[r]);
  for (int r = 0; r < graph->n_regions; r++) note_region(&uses, graph->regions[r]);
  for (int r = 0; r < graph->n_regions; r++)
    for (int i = 0; i < graph->regions[r]->parameters.count; i++) {
      struct parameter *p = &graph->regions[r]->parameters.items[i];
      const struct value *root = uses.roots[p->value->id];
      p->partial_gradient = root->differentiable && uses.sharded[root->id] && !uses.otherwise[root->id];
      partial[p->value->id] = p->partial_gradient;
      if (p->bits16 != NULL) partial[p->bits16->id] = p->partial_gradient;
    }
  return partial;
}
