#include "gen/onnx/flat.h"

#include <assert.h>
#include <string.h>

static const char *joined(struct arena *arena, const char *scope, const char *path) {
  if (scope[0] == '\0' || path[0] == '\0') return scope[0] == '\0' ? path : scope;
  return arena_printf(arena, "%s.%s", scope, path);
}

static int new_value(struct flat *flat, const struct value *value, const char *parameter) {
  const struct flat_value item = {value, parameter};
  ARENA_PUSH(flat->arena, flat->values, item);
  return flat->values.count - 1;
}

static int parameter_of(struct flat *flat, const char *name, const struct parameter *parameter) {
  for (int i = 0; i < flat->parameters.count; i++)
    if (strcmp(flat->values.items[flat->parameters.items[i]].parameter, name) == 0) return flat->parameters.items[i];
  const int number = new_value(flat, parameter->value, name);
  ARENA_PUSH(flat->arena, flat->parameters, number);
  return number;
}

static void lay_out(struct flat *flat, const struct region *region, const char *const *scopes, const int *inputs,
                    int *results);

/* ---- Calls ---- */

static const char **callee_scopes(struct flat *flat, const struct call *call, const char *const *scopes, int pass) {
  const char **inner = arena_alloc(flat->arena, ((size_t)call->callee->n_scopes + 1) * sizeof *inner);
  for (int i = 0; i < call->callee->n_scopes; i++) {
    const struct scope *scope = call->scopes[i * call->count + pass];
    inner[i] = joined(flat->arena, scopes[scope->formal], scope->path);
  }
  return inner;
}

static void lay_out_call(struct flat *flat, const struct node *node, const char *const *scopes) {
  const struct call *call = node->call;
  const int n_results = call->callee->results.count;
  int *inputs = arena_alloc(flat->arena, ((size_t)node->n_inputs + 1) * sizeof *inputs);
  int *results = arena_alloc(flat->arena, ((size_t)n_results + 1) * sizeof *results);
  assert(call->forward == NULL && call->n_histories == 0);
  for (int pass = 0; pass < call->count; pass++) {
    for (int i = 0; i < node->n_inputs; i++)
      inputs[i] = pass > 0 && call->carry[i] >= 0 ? results[call->carry[i]] : flat->current[node->inputs[i]->id];
    lay_out(flat, call->callee, callee_scopes(flat, call, scopes, pass), inputs, results);
  }
  for (int i = 0; i < n_results; i++) flat->current[node->outputs[i]->id] = results[i];
}

/* ---- Regions ---- */

static void lay_out_node(struct flat *flat, const struct node *node) {
  struct flat_node item = {.node = node};
  item.inputs = arena_alloc(flat->arena, ((size_t)node->n_inputs + 1) * sizeof *item.inputs);
  item.outputs = arena_alloc(flat->arena, ((size_t)node->n_outputs + 1) * sizeof *item.outputs);
  for (int i = 0; i < node->n_inputs; i++) item.inputs[i] = flat->current[node->inputs[i]->id];
  for (int i = 0; i < node->n_outputs; i++)
    flat->current[node->outputs[i]->id] = item.outputs[i] = new_value(flat, node->outputs[i], NULL);
  ARENA_PUSH(flat->arena, flat->nodes, item);
}

static void lay_out(struct flat *flat, const struct region *region, const char *const *scopes, const int *inputs,
                    int *results) {
  for (int i = 0; i < region->inputs.count; i++) flat->current[region->inputs.items[i]->id] = inputs[i];
  for (int i = 0; i < region->parameters.count; i++) {
    const struct parameter *parameter = &region->parameters.items[i];
    const char *name = joined(flat->arena, scopes[parameter->scope], parameter->path);
    flat->current[parameter->value->id] = parameter_of(flat, name, parameter);
  }
  for (int i = 0; i < region->nodes.count; i++) {
    const struct node *node = region->nodes.items[i];
    if (node->call != NULL)
      lay_out_call(flat, node, scopes);
    else
      lay_out_node(flat, node);
  }
  for (int i = 0; i < region->results.count; i++) results[i] = flat->current[region->results.items[i]->id];
}

/* ---- What is used ---- */

static void mark_used(struct flat *flat) {
  bool *wanted = arena_alloc(flat->arena, ((size_t)flat->values.count + 1) * sizeof *wanted);
  for (int i = 0; i < flat->n_results; i++) wanted[flat->results[i]] = true;
  for (int i = flat->nodes.count - 1; i >= 0; i--) {
    struct flat_node *node = &flat->nodes.items[i];
    for (int k = 0; k < node->node->n_outputs; k++) node->used |= wanted[node->outputs[k]];
    for (int k = 0; node->used && k < node->node->n_inputs; k++) wanted[node->inputs[k]] = true;
  }
}

struct flat *flat_of(struct arena *arena, const struct graph *graph) {
  const struct region *entry = graph->entry;
  struct flat *flat = arena_alloc(arena, sizeof *flat);
  const char **scopes = arena_alloc(arena, ((size_t)entry->n_scopes + 1) * sizeof *scopes);
  *flat = (struct flat){.arena = arena, .n_inputs = entry->inputs.count, .n_results = entry->results.count};
  flat->inputs = arena_alloc(arena, ((size_t)flat->n_inputs + 1) * sizeof(int));
  flat->results = arena_alloc(arena, ((size_t)flat->n_results + 1) * sizeof(int));
  flat->current = arena_alloc(arena, ((size_t)graph->next_value + 1) * sizeof(int));
  for (int i = 0; i < entry->n_scopes; i++) scopes[i] = "";
  for (int i = 0; i < flat->n_inputs; i++) flat->inputs[i] = new_value(flat, entry->inputs.items[i], NULL);
  lay_out(flat, entry, scopes, flat->inputs, flat->results);
  mark_used(flat);
  return flat;
}
