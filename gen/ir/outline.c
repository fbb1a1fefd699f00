#include "gen/ir/outline.h"

#include <string.h>

#include "gen/ir/names.h"
#include "gen/ir/op.h"
#include "gen/ir/region.h"

/* One iteration of the loop, and the region that it would be. */
struct body {
  struct node **nodes;
  int n;
  struct region *region;
  struct value_list captured; /* what the region's inputs are, outside */
  struct {
    struct scope **items;
    int count, capacity;
  } scopes;           /* what the region's scopes are, outside */
  struct value **map; /* by value id of the enclosing region: its counterpart in the body */
};

struct outlining {
  struct graph *graph;
  struct region *region;
  struct body *bodies;
  int count;
};

static bool is_inside(const struct body *body, const struct node *node) {
  for (int i = 0; i < body->n; i++)
    if (body->nodes[i] == node) return true;
  return false;
}

static void collect(struct outlining *outlining, const struct loop *loop, int k) {
  struct body *body = &outlining->bodies[k];
  const struct region *region = outlining->region;
  int from = loop->starts[k], to = k + 1 < loop->count ? loop->starts[k + 1] : loop->end;
  body->nodes = arena_alloc(outlining->graph->arena, ((size_t)region->nodes.count + 1) * sizeof *body->nodes);
  for (int i = 0; i < region->nodes.count; i++)
    if (region->nodes.items[i]->id >= from && region->nodes.items[i]->id < to)
      body->nodes[body->n++] = region->nodes.items[i];
}

static bool has_parameters(const struct body *body) {
  for (int i = 0; i < body->n; i++) {
    if (body->nodes[i]->call != NULL) return true;
    for (int k = 0; k < body->nodes[i]->n_inputs; k++)
      if (body->nodes[i]->inputs[k]->kind == VALUE_PARAMETER) return true;
  }
  return false;
}

/* ---- Scopes ---- */

/* The body's scope for a name of the enclosing region, whose counterpart in another iteration is `other`: up to the
 * number in which they differ, or the enclosing scope itself where they are equal. *rest is the name below it. */
static bool bind_scope(struct outlining *outlining, struct body *body, int formal, const char *path, const char *other,
                       int *index, const char **rest) {
  struct arena *arena = outlining->graph->arena;
  int end;
  if (!paths_progress(path, other, &end)) return false;
  const char *prefix = end < 0 ? "" : arena_copy(arena, path, (size_t)end);
  *rest = end < 0 ? path : path + end + (path[end] == '.');
  for (*index = 0; *index < body->scopes.count; (*index)++) {
    const struct scope *known = body->scopes.items[*index];
    if (known->formal == formal && strcmp(known->path, prefix) == 0) return true;
  }
  struct scope *scope = arena_alloc(arena, sizeof *scope);
  *scope = (struct scope){.region = outlining->region, .formal = formal, .path = prefix};
  ARENA_PUSH(arena, body->scopes, scope);
  body->region->n_scopes = body->scopes.count;
  return true;
}

static bool bind_call(struct outlining *outlining, struct body *body, const struct call *call, const struct call *other,
                      struct call *copy) {
  struct arena *arena = outlining->graph->arena;
  int n = call->callee->n_scopes * call->count;
  if (other == NULL || other->callee != call->callee || other->count != call->count) return false;
  copy->scopes = arena_alloc(arena, ((size_t)n + 1) * sizeof *copy->scopes);
  for (int i = 0; i < n; i++) {
    struct scope *scope = arena_alloc(arena, sizeof *scope);
    const char *rest;
    int index;
    if (other->scopes[i]->formal != call->scopes[i]->formal) return false;
    if (!bind_scope(outlining, body, call->scopes[i]->formal, call->scopes[i]->path, other->scopes[i]->path, &index,
                    &rest))
      return false;
    *scope = (struct scope){body->region, index, rest, call->scopes[i]->init};
    copy->scopes[i] = scope;
  }
  return true;
}

/* ---- The body as a region ---- */

static bool take_parameter(struct outlining *outlining, struct body *body, struct value *value,
                           const struct value *other) {
  const struct parameter *outer = &outlining->region->parameters.items[value->index];
  if (other->kind != VALUE_PARAMETER) return false;
  const struct parameter *counterpart = &outlining->region->parameters.items[other->index];
  struct parameter parameter = *outer;
  if (counterpart->scope != outer->scope) return false;
  if (!bind_scope(outlining, body, outer->scope, outer->path, counterpart->path, &parameter.scope, &parameter.path))
    return false;
  parameter.value = value_new(outlining->graph, body->region, VALUE_PARAMETER, body->region->parameters.count,
                              value->shape, value->dtype);
  parameter.value->differentiable = value->differentiable;
  ARENA_PUSH(outlining->graph->arena, body->region->parameters, parameter);
  body->map[value->id] = parameter.value;
  return true;
}

static void capture(struct outlining *outlining, struct body *body, struct value *value) {
  struct value *input = region_input(outlining->graph, body->region, value->shape, value->dtype);
  input->differentiable = value->differentiable;
  input->name = value->name;
  ARENA_PUSH(outlining->graph->arena, body->captured, value);
  body->map[value->id] = input;
}

static bool take_node(struct outlining *outlining, struct body *body, const struct node *node,
                      const struct node *other) {
  if (other->kind != node->kind || other->n_inputs != node->n_inputs) return false;
  for (int i = 0; i < node->n_inputs; i++) {
    struct value *value = node->inputs[i];
    if (body->map[value->id] != NULL) continue;
    if (value->kind != VALUE_PARAMETER)
      capture(outlining, body, value);
    else if (!take_parameter(outlining, body, value, other->inputs[i]))
      return false;
  }
  struct node *copy = node_copy(outlining->graph, node, body->region, body->map);
  return node->call == NULL || bind_call(outlining, body, node->call, other->call, copy->call);
}

/* The region of body k; `other` is any other body of the loop. */
static bool make_region(struct outlining *outlining, struct body *body, const struct body *other) {
  struct graph *graph = outlining->graph;
  const char *name = arena_printf(graph->arena, "%s_iteration", outlining->region->function);
  body->region = region_new(graph->arena, name, body->nodes[0]->where, 0);
  body->map = arena_alloc(graph->arena, ((size_t)graph->next_value + 1) * sizeof *body->map);
  for (int i = 0; i < body->n; i++)
    if (!take_node(outlining, body, body->nodes[i], other->nodes[i])) return false;
  return true;
}

static bool is_used_outside(const struct outlining *outlining, const struct body *body, const struct value *value) {
  const struct region *region = outlining->region;
  for (int i = 0; i < region->nodes.count; i++) {
    const struct node *node = region->nodes.items[i];
    for (int k = 0; k < node->n_inputs; k++)
      if (node->inputs[k] == value && !is_inside(body, node)) return true;
  }
  for (int i = 0; i < region->results.count; i++)
    if (region->results.items[i] == value) return true;
  return false;
}

/* What any iteration gives to the outside is a result of all. */
static void find_results(struct outlining *outlining) {
  for (int i = 0; i < outlining->bodies[0].n; i++)
    for (int o = 0; o < outlining->bodies[0].nodes[i]->n_outputs; o++) {
      bool used = false;
      for (int k = 0; k < outlining->count; k++)
        used |= is_used_outside(outlining, &outlining->bodies[k], outlining->bodies[k].nodes[i]->outputs[o]);
      for (int k = 0; k < outlining->count && used; k++) {
        struct body *body = &outlining->bodies[k];
        ARENA_PUSH(outlining->graph->arena, body->region->results, body->map[body->nodes[i]->outputs[o]->id]);
      }
    }
}

/* ---- Calls instead of nodes ---- */

static struct value *original_of(const struct body *body, const struct value *inner) {
  for (int i = 0; i < body->n; i++)
    for (int o = 0; o < body->nodes[i]->n_outputs; o++)
      if (body->map[body->nodes[i]->outputs[o]->id] == inner) return body->nodes[i]->outputs[o];
  return NULL;
}

static void put_call(struct outlining *outlining, struct body *body, struct region *callee, struct value **now) {
  struct graph *graph = outlining->graph;
  struct region *region = outlining->region;
  int n = body->captured.count;
  for (int i = 0; i < n; i++)
    if (now[body->captured.items[i]->id] != NULL) body->captured.items[i] = now[body->captured.items[i]->id];
  struct node *node = node_new(graph, &op_call, body->captured.items, n, body->nodes[0]->where);
  node->id = body->nodes[body->n - 1]->id; /* loops know their iterations by node ids */
  node->region = region;
  node->call = arena_alloc(graph->arena, sizeof *node->call);
  *node->call = (struct call){.callee = callee, .count = 1, .scopes = body->scopes.items};
  node->call->carry = arena_alloc(graph->arena, ((size_t)n + 1) * sizeof(int));
  for (int i = 0; i < n; i++) node->call->carry[i] = -1;
  for (int i = 0; i < body->region->results.count; i++) {
    struct value *original = original_of(body, body->region->results.items[i]);
    struct value *value = node_output(graph, node, original->shape, original->dtype);
    value->name = original->name;
    value->differentiable = original->differentiable;
    now[original->id] = value;
    region_replace(region, original, value);
  }
  for (int i = 0, kept = 0; i < region->nodes.count; i++) {
    if (region->nodes.items[i] == body->nodes[body->n - 1])
      region->nodes.items[kept++] = node;
    else if (!is_inside(body, region->nodes.items[i]))
      region->nodes.items[kept++] = region->nodes.items[i];
    if (i == region->nodes.count - 1) region->nodes.count = kept;
  }
}

/* Parameters of the enclosing region that only the bodies used are named by the bodies' regions now. */
static void drop_parameters(struct region *region) {
  int kept = 0;
  for (int i = 0; i < region->parameters.count; i++) {
    struct parameter parameter = region->parameters.items[i];
    if (!value_is_used(region, parameter.value, NULL)) continue;
    parameter.value->index = kept;
    region->parameters.items[kept++] = parameter;
  }
  region->parameters.count = kept;
}

static bool is_candidate(const struct outlining *outlining) {
  const struct body *first = &outlining->bodies[0];
  if (first->n == 0 || !has_parameters(first)) return false;
  if (first->n == 1 && first->nodes[0]->call != NULL && first->nodes[0]->call->count == 1) return false;
  for (int k = 1; k < outlining->count; k++)
    if (outlining->bodies[k].n != first->n) return false;
  return true;
}

void outline_loop(struct graph *graph, struct region *region, const struct loop *loop) {
  if (loop->count < 2) return;
  struct outlining outlining = {.graph = graph, .region = region, .count = loop->count};
  outlining.bodies = arena_alloc(graph->arena, (size_t)loop->count * sizeof *outlining.bodies);
  for (int k = 0; k < loop->count; k++) collect(&outlining, loop, k);
  if (!is_candidate(&outlining)) return;
  for (int k = 0; k < loop->count; k++)
    if (!make_region(&outlining, &outlining.bodies[k], &outlining.bodies[k == 0 ? 1 : 0])) return;
  find_results(&outlining);
  for (int k = 1; k < loop->count; k++)
    if (!region_equal(outlining.bodies[0].region, outlining.bodies[k].region)) return;
  struct region *callee = graph_find_equal(graph, outlining.bodies[0].region);
  if (callee == NULL) {
    callee = outlining.bodies[0].region;
    region_number_calls(callee);
    name_values(graph->arena, callee);
    graph_add(graph, callee);
  }
  struct value **now = arena_alloc(graph->arena, ((size_t)graph->next_value + 1) * sizeof *now);
  for (int k = 0; k < loop->count; k++) put_call(&outlining, &outlining.bodies[k], callee, now);
  drop_parameters(region);
}
