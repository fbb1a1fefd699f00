#include "gen/ir/copy.h"

#include "gen/ir/region.h"

struct value *copy_of(const struct copying *copying, struct value *value) {
  struct value *copy = copying->values != NULL ? copying->values[value->id] : NULL;
  return copy != NULL ? copy : value;
}

/* NULL for NULL. */
static struct value *copy_parameter(struct copying *copying, const struct value *original, struct region *to) {
  if (original == NULL) return NULL;
  struct value *copy =
      value_new(copying->graph, to, VALUE_PARAMETER, original->index, original->shape, original->dtype);
  copy->name = original->name;
  copy->differentiable = original->differentiable;
  return copying->values[original->id] = copy;
}

static void copy_operands(struct copying *copying, const struct region *from, struct region *to) {
  for (int i = 0; i < from->inputs.count; i++) {
    const struct value *input = from->inputs.items[i];
    struct value *copy = region_input(copying->graph, to, input->shape, input->dtype);
    copy->name = input->name;
    copy->differentiable = input->differentiable;
    copying->values[input->id] = copy;
  }
  copy_parameters(copying, from, to);
}

void copy_parameters(struct copying *copying, const struct region *from, struct region *to) {
  for (int i = 0; i < from->parameters.count; i++) {
    struct parameter parameter = from->parameters.items[i];
    parameter.value = copy_parameter(copying, parameter.value, to);
    parameter.bits16 = copy_parameter(copying, parameter.bits16, to);
    ARENA_PUSH(copying->graph->arena, to->parameters, parameter);
  }
}

void copy_nodes(struct copying *copying, const struct region *from, struct region *to) {
  for (int i = 0; i < from->nodes.count; i++) {
    struct node *copy = node_copy(copying->graph, from->nodes.items[i], to, copying->values);
    if (copy->call == NULL || copying->callees == NULL) continue;
    struct region *callee = copying->callees[copy->call->callee->id];
    if (callee != NULL) copy->call->callee = callee;
  }
}

struct region *copy_region(struct copying *copying, const struct region *from, const char *suffix) {
  struct graph *graph = copying->graph;
  struct region *to = region_new(graph->arena, from->function, from->where, from->n_scopes);
  to->name = arena_printf(graph->arena, "%s_%s", from->name, suffix);
  to->recompute = from->recompute;
  to->group = from->group;
  copy_operands(copying, from, to);
  copy_nodes(copying, from, to);
  for (int i = 0; i < from->results.count; i++)
    ARENA_PUSH(graph->arena, to->results, copy_of(copying, from->results.items[i]));
  graph_add(graph, to);
  return to;
}
