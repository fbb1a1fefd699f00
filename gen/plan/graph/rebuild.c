#include "gen/plan/graph/rebuild.h"

#include <assert.h>

#include "gen/ir/names.h"
#include "gen/ir/op.h"
#include "gen/ir/region.h"

struct value *rebuild_stand(const struct rebuild *rebuild, struct value *value) {
  return rebuild->replacements[value->id] != NULL ? rebuild->replacements[value->id] : value;
}

void rebuild_shorten(const struct rebuild *rebuild, struct node *node, const struct placement *placements,
                     int64_t ranks, enum axis axis) {
  bool fits = op_shorten(rebuild->program->arena, node, placements, ranks, (int)axis);
  assert(fits);
  (void)fits;
}

void rebuild_region(struct rebuild *rebuild, struct region *region) {
  const struct node_list nodes = region->nodes;
  struct arena *arena = rebuild->program->arena;
  rebuild->replacements =
      arena_alloc(arena, ((size_t)rebuild->program->graph->next_value + 1) * sizeof *rebuild->replacements);
  region->nodes = (struct node_list){0};
  builder_enter(rebuild->builder, region);
  for (int i = 0; i < nodes.count; i++) {
    struct node *node = nodes.items[i];
    builder_at(rebuild->builder, node->where);
    for (int k = 0; k < node->n_inputs; k++) node->inputs[k] = rebuild->take(rebuild, node, k);
    rebuild->append(rebuild, region, node);
  }
  for (int i = 0; i < region->results.count; i++) region->results.items[i] = rebuild->give(rebuild, region, i);
  builder_leave(rebuild->builder);
  name_values(arena, region);
}
