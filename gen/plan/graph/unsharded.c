#include "gen/plan/graph/unsharded.h"

#include <string.h>

#include "gen/base/path.h"
#include "gen/ir/op.h"

/* The matrix or table that a node reads whole; NULL: there is none. */
static const struct parameter *whole_of(const struct placements *placements, const struct node *node) {
  for (int i = 0; i < node->n_inputs; i++)
    for (int k = 0; k < node->region->parameters.count; k++) {
      const struct parameter *p = &node->region->parameters.items[k];
      const struct value *root = viewed_value(node->inputs[i]);
      if ((root == p->value || (p->bits16 != NULL && root == p->bits16)) && p->value->shape.rank >= 2 &&
          placement_of(placements, p->value).form != PLACED_SPLIT)
        return p;
    }
  return NULL;
}

static const char *place_text(const struct placements *placements, const struct node *node) {
  return arena_printf(placements->program->arena, "%s in %s:%d", node->kind->name, name_in_folder(node->where.file),
                      node->where.line);
}

static const char *reason(const struct placements *placements, const struct node *node,
                          const struct parameter *parameter) {
  const struct node *needs = placements->reasons[node->id];
  int input, dim;
  if (placements->stays_whole[parameter->value->id]) return "parallelism.tp_plan says so";
  if (!node->kind->ranks.tried(node, &input, &dim))
    return arena_printf(placements->program->arena, "the rule of %s does not ask for parts of it", node->kind->name);
  if (needs == NULL) return "ranks would not have equal parts";
  if (needs == node) return "it would need its input whole";
  return arena_printf(placements->program->arena, "%s needs a tensor whole that they would shard",
                      place_text(placements, needs));
}

static bool is_known(const struct program_placed *placed, const char *line) {
  for (int i = 0; i < placed->n_whole; i++)
    if (strcmp(placed->whole[i], line) == 0) return true;
  return false;
}

static void note_node(struct placements *placements, const struct node *node, int capacity) {
  struct program *program = placements->program;
  const struct parameter *whole =
      node->call == NULL && node->kind->ranks.tried != NULL ? whole_of(placements, node) : NULL;
  if (whole == NULL || program->ranks.placed.n_whole == capacity) return;
  const char *line = arena_printf(program->arena, "%s, of %s: %s", whole->path, place_text(placements, node),
                                  reason(placements, node, whole));
  if (!is_known(&program->ranks.placed, line)) program->ranks.placed.whole[program->ranks.placed.n_whole++] = line;
}

static void count(const struct placements *placements, const struct node *node) {
  struct program_placed *placed = &placements->program->ranks.placed;
  for (int i = 0; i < node->n_outputs && node->call == NULL; i++) {
    placed->values++;
    placed->split += placement_of(placements, node->outputs[i]).form == PLACED_SPLIT;
  }
}

void note_unsharded(struct placements *placements) {
  const struct graph *graph = placements->program->graph;
  int nodes = 0;
  for (int r = 0; r < graph->n_regions; r++) nodes += graph->regions[r]->nodes.count;
  placements->program->ranks.placed.whole =
      arena_alloc(placements->program->arena, ((size_t)nodes + 1) * sizeof(const char *));
  for (int r = 0; r < graph->n_regions; r++)
    for (int i = 0; i < graph->regions[r]->nodes.count; i++) {
      note_node(placements, graph->regions[r]->nodes.items[i], nodes);
      count(placements, graph->regions[r]->nodes.items[i]);
    }
}
