#include "gen/plan/evaluation.h"

#include "gen/ir/op.h"
#include "gen/ir/region.h"

static bool is_random(const struct graph *graph) {
  for (int r = 0; r < graph->n_regions; r++)
    for (int i = 0; i < graph->regions[r]->nodes.count; i++)
      if (graph->regions[r]->nodes.items[i]->kind->random) return true;
  return false;
}

static void drop_from_region(struct region *region) {
  int kept = 0;
  for (int i = 0; i < region->nodes.count; i++) {
    struct node *node = region->nodes.items[i];
    if (node->kind->random)
      region_replace(region, node->outputs[0], node->inputs[0]);
    else
      region->nodes.items[kept++] = node;
  }
  region->nodes.count = kept;
}

void drop_random(struct graph *graph) {
  for (int r = 0; r < graph->n_regions; r++) drop_from_region(graph->regions[r]);
}

/* While the regions are copied: what stands for a region or a value of the original. */
struct copying {
  struct graph *graph;
  struct region **regions; /* by id */
  struct value **values;   /* by id */
};

static struct value *copy_of(const struct copying *copying, const struct value *value) {
  return copying->values[value->id];
}

static void copy_operands(struct copying *copying, const struct region *from, struct region *to) {
  for (int i = 0; i < from->inputs.count; i++) {
    const struct value *input = from->inputs.items[i];
    struct value *copy = region_input(copying->graph, to, input->shape, input->dtype);
    copy->name = input->name;
    copying->values[input->id] = copy;
  }
  for (int i = 0; i < from->parameters.count; i++) {
    struct parameter parameter = from->parameters.items[i];
    const struct value *original = parameter.value;
    parameter.value = value_new(copying->graph, to, VALUE_PARAMETER, i, original->shape, original->dtype);
    parameter.value->name = original->name;
    copying->values[original->id] = parameter.value;
    ARENA_PUSH(copying->graph->arena, to->parameters, parameter);
  }
}

static void copy_node(struct copying *copying, const struct node *node, struct region *to) {
  struct node *copy = node_copy(copying->graph, node, to, copying->values);
  if (copy->call != NULL) copy->call->callee = copying->regions[copy->call->callee->id];
}

static struct region *copy_region(struct copying *copying, const struct region *from) {
  struct graph *graph = copying->graph;
  struct region *to = region_new(graph->arena, from->function, from->where, from->n_scopes);
  to->name = arena_printf(graph->arena, "%s_evaluation", from->name);
  copy_operands(copying, from, to);
  for (int i = 0; i < from->nodes.count; i++) copy_node(copying, from->nodes.items[i], to);
  for (int i = 0; i < from->results.count; i++)
    ARENA_PUSH(graph->arena, to->results, copy_of(copying, from->results.items[i]));
  drop_from_region(to);
  graph_add(graph, to);
  return to;
}

struct region *add_evaluation(struct graph *graph) {
  if (!is_random(graph)) return NULL;
  int n = graph->n_regions;
  struct copying copying = {.graph = graph};
  copying.regions = arena_alloc(graph->arena, (size_t)n * sizeof(struct region *));
  copying.values = arena_alloc(graph->arena, ((size_t)graph->next_value + 1) * sizeof(struct value *));
  for (int i = 0; i < n; i++) copying.regions[i] = copy_region(&copying, graph->regions[i]);
  return copying.regions[graph->entry->id];
}
