#include "gen/stablehlo/interface.h"

#include <string.h>

#include "gen/ir/op.h"
#include "gen/ir/region.h"

static const char *joined(struct arena *arena, const char *scope, const char *path) {
  if (scope[0] == '\0' || path[0] == '\0') return scope[0] == '\0' ? path : scope;
  return arena_printf(arena, "%s.%s", scope, path);
}

int hlo_parameter_index(const struct hlo_parameters *list, int scope, const char *path) {
  for (int i = 0; i < list->count; i++)
    if (list->items[i].scope == scope && strcmp(list->items[i].path, path) == 0) return i;
  return -1;
}

static void add(struct arena *arena, struct hlo_parameters *list, struct hlo_parameter item) {
  if (hlo_parameter_index(list, item.scope, item.path) < 0) ARENA_PUSH(arena, *list, item);
}

/* A callee's parameter under the caller's name. */
static struct hlo_parameter renamed(struct arena *arena, const struct call *call, int iteration,
                                    const struct hlo_parameter *of_callee) {
  const struct scope *scope = call->scopes[of_callee->scope * call->count + iteration];
  return (struct hlo_parameter){scope->formal, joined(arena, scope->path, of_callee->path), of_callee->parameter};
}

int hlo_find_parameter(struct arena *arena, const struct hlo_parameters *list, const struct call *call, int iteration,
                       const struct hlo_parameter *of_callee) {
  const struct hlo_parameter own = renamed(arena, call, iteration, of_callee);
  return hlo_parameter_index(list, own.scope, own.path);
}

static void add_callee(struct arena *arena, struct hlo_parameters *list, const struct call *call,
                       const struct hlo_parameters *of_callee) {
  for (int i = 0; i < call->count; i++)
    for (int k = 0; k < of_callee->count; k++) add(arena, list, renamed(arena, call, i, &of_callee->items[k]));
}

static struct hlo_parameter own_parameter(const struct parameter *parameter) {
  return (struct hlo_parameter){parameter->scope, parameter->path, parameter};
}

/* The parameter that a value is, of the region or of its forward region; NULL: it is none. */
static const struct parameter *parameter_of(const struct region *region, const struct value *value) {
  const struct region *owner = value->region == region ? region : region->forward;
  if (value->kind != VALUE_PARAMETER || owner == NULL || value->region != owner) return NULL;
  return &owner->parameters.items[value->index];
}

const struct parameter *hlo_assigned(const struct region *region, const struct node *node, int output) {
  const int input = node->call == NULL ? node->kind->memory.assigns[op_described(node->kind, output)] : 0;
  return input > 0 ? parameter_of(region, node->inputs[input - 1]) : NULL;
}

/* ---- Parameters and gradients ---- */

static void collect_assigned(struct arena *arena, const struct region *region, const struct node *node,
                             struct hlo_parameters *list) {
  for (int i = 0; i < node->n_outputs && !node->discards; i++) {
    const struct parameter *parameter = hlo_assigned(region, node, i);
    if (parameter != NULL) add(arena, list, own_parameter(parameter));
  }
}

static void collect(struct arena *arena, const struct region *region, struct hlo_interface *interfaces) {
  struct hlo_interface *own = &interfaces[region->id];
  for (int i = 0; i < region->nodes.count; i++) {
    const struct node *node = region->nodes.items[i];
    for (int k = 0; k < node->n_inputs; k++) {
      const struct parameter *parameter = parameter_of(region, node->inputs[k]);
      if (parameter != NULL) add(arena, &own->parameters, own_parameter(parameter));
    }
    collect_assigned(arena, region, node, &own->assigned);
    own->random |= node->kind->kernel.random;
    if (node->call == NULL) continue;
    own->random |= interfaces[node->call->callee->id].random;
    add_callee(arena, &own->assigned, node->call, &interfaces[node->call->callee->id].assigned);
    add_callee(arena, &own->parameters, node->call, &interfaces[node->call->callee->id].parameters);
    add_callee(arena, &own->gradients, node->call, &interfaces[node->call->callee->id].gradients);
  }
  for (int i = 0; i < region->results.count; i++) {
    const struct parameter *parameter = parameter_of(region, region->results.items[i]);
    if (parameter != NULL) add(arena, &own->parameters, own_parameter(parameter));
  }
  for (int i = 0; i < region->gradients.count; i++)
    add(arena, &own->gradients,
        own_parameter(&region->forward->parameters.items[region->gradients.items[i].parameter]));
}

/* ---- What is saved ---- */

bool hlo_is_history(const struct value *value) {
  const struct node *node = value->producer;
  return node != NULL && node->call != NULL && value->index >= node->call->callee->results.count;
}

static void save(struct arena *arena, struct hlo_saved_list *list, struct hlo_saved item) {
  for (int i = 0; i < list->count; i++)
    if (list->items[i].call == NULL && list->items[i].value == item.value && list->items[i].iteration == item.iteration)
      return;
  ARENA_PUSH(arena, *list, item);
}

static void save_value(struct arena *arena, struct hlo_saved_list *list, const struct value *value) {
  if (!hlo_is_history(value)) save(arena, list, (struct hlo_saved){.value = value, .iteration = -1});
  for (int i = 0; hlo_is_history(value) && i < value->producer->call->count; i++)
    save(arena, list, (struct hlo_saved){.value = value, .iteration = i});
}

static void save_call(struct arena *arena, struct hlo_saved_list *list, const struct node *call,
                      const struct hlo_saved_list *of_callee) {
  for (int i = 0; i < call->call->count; i++)
    for (int k = 0; k < of_callee->count; k++) {
      const struct hlo_saved item = {of_callee->items[k].value, call, i, k};
      ARENA_PUSH(arena, *list, item);
    }
}

/* What the backward region uses of its forward region, and what the regions called there save for it. */
static void collect_saved(struct arena *arena, const struct region *backward, struct hlo_interface *interfaces) {
  const struct region *forward = backward->forward;
  struct hlo_saved_list *list = &interfaces[forward->id].saved;
  for (int i = 0; i < backward->nodes.count; i++) {
    const struct node *node = backward->nodes.items[i];
    for (int k = 0; k < node->n_inputs; k++)
      if (node->inputs[k]->region == forward && node->inputs[k]->kind == VALUE_RESULT)
        save_value(arena, list, node->inputs[k]);
    const struct node *over = node->call != NULL ? node->call->forward : NULL;
    if (over != NULL && over->region == forward)
      save_call(arena, list, over, &interfaces[over->call->callee->id].saved);
  }
  for (int i = 0; i < backward->results.count; i++) {
    const struct value *value = backward->results.items[i];
    if (value->region == forward && value->kind == VALUE_RESULT) save_value(arena, list, value);
  }
  for (int i = 0; i < backward->gradients.count; i++) {
    const struct value *value = backward->gradients.items[i].value;
    if (value->region == forward && value->kind == VALUE_RESULT) save_value(arena, list, value);
  }
}

struct hlo_interface *hlo_interfaces(struct arena *arena, const struct graph *graph) {
  struct hlo_interface *interfaces = arena_alloc(arena, (size_t)graph->n_regions * sizeof *interfaces);
  for (int i = 0; i < graph->n_regions; i++) {
    collect(arena, graph->regions[i], interfaces);
    if (graph->regions[i]->forward != NULL) collect_saved(arena, graph->regions[i], interfaces);
  }
  return interfaces;
}
