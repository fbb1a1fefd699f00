#include "gen/plan/graph/split.h"

#include <string.h>

#include "gen/base/text.h"
#include "gen/ir/names.h"
#include "gen/ir/op.h"
#include "gen/ir/region.h"
#include "gen/plan/graph/weight_visitor.h"

struct split {
  struct graph *graph;
  const struct splitting *rules;
  struct value **map; /* by id: the counterpart of a value of the regions as the model made them */
};

/* ---- Marks ---- */

static struct treatment treat(const struct split *split, const struct parameter *p, const char *const *prefixes) {
  const char *name = weight_path(split->graph->arena, prefixes[p->scope], p->path);
  struct treatment treatment = split->rules->treat(split->rules->context, p, name);
  treatment.trains &= p->value->differentiable;
  return treatment;
}

/* The marks of a region's own parameters. */
static void sign_own(const struct split *split, const struct region *region, const char *const *prefixes,
                     struct text *text) {
  for (int i = 0; i < region->parameters.count; i++)
    text_puts(text, (char[]){treat(split, &region->parameters.items[i], prefixes).mark, '\0'});
}

/* And of all below it. Whether any of them is trained. */
static bool sign(const struct split *split, const struct region *region, const char *const *prefixes,
                 struct text *text) {
  bool trains = false;
  sign_own(split, region, prefixes, text);
  for (int i = 0; i < region->parameters.count; i++)
    trains |= treat(split, &region->parameters.items[i], prefixes).trains;
  for (int i = 0; i < region->nodes.count; i++) {
    const struct call *call = region->nodes.items[i]->call;
    for (int k = 0; call != NULL && k < call->count; k++)
      trains |= sign(split, call->callee, weight_scopes(split->graph->arena, call, k, prefixes), text);
  }
  return trains;
}

static const char *signature(const struct split *split, const struct region *region, const char *const *prefixes) {
  struct text text = text_in(split->graph->arena);
  sign(split, region, prefixes, &text);
  return text_string(&text);
}

/* ---- Regions made again ---- */

static struct region *split_region(struct split *split, const struct region *from, const char *const *prefixes,
                                   const bool *flags);

static bool outputs_differentiable(const struct node *node) {
  bool any = false;
  for (int i = 0; i < node->n_inputs; i++) any |= node->inputs[i]->differentiable;
  return any && node->kind->gradient != NULL;
}

static void split_node(struct split *split, const struct node *node, const char *marks, struct region *to) {
  struct node *copy = node_copy(split->graph, node, to, split->map);
  for (int i = 0; i < copy->n_outputs; i++)
    copy->outputs[i]->differentiable = dtype_is_float(copy->outputs[i]->dtype) && outputs_differentiable(copy);
  struct value *extended =
      split->rules->extend != NULL ? split->rules->extend(split->rules->context, copy, marks) : NULL;
  if (extended != NULL) split->map[node->outputs[0]->id] = extended;
}

/* Iterations [first, first + count) of a call. `inputs` are those of the first of them, and become those that an
 * iteration after them would have; the outputs replace those of the call. */
static void split_run(struct split *split, const struct node *node, int first, int count, const char *const *prefixes,
                      struct value **inputs, struct region *to) {
  struct graph *graph = split->graph;
  const struct call *call = node->call;
  const char *const *inner = weight_scopes(graph->arena, call, first, prefixes);
  bool *flags = arena_alloc(graph->arena, ((size_t)node->n_inputs + 1) * sizeof *flags);
  struct text unread = text_in(graph->arena);
  bool flows = sign(split, call->callee, inner, &unread);
  for (int i = 0; i < node->n_inputs; i++) flows |= flags[i] = inputs[i]->differentiable;
  for (int i = 0; i < node->n_inputs && count > 1; i++) /* what one iteration gives depends on what it was given */
    if (call->carry[i] >= 0) flags[i] |= flows && dtype_is_float(inputs[i]->dtype);
  struct node *run = node_new(graph, &op_call, inputs, node->n_inputs, node->where);
  run->call = arena_alloc(graph->arena, sizeof *run->call);
  *run->call = *call;
  run->call->callee = split_region(split, call->callee, inner, flags);
  run->call->count = count;
  run->call->first += call->step * first;
  int n_scopes = call->callee->n_scopes;
  run->call->scopes = arena_alloc(graph->arena, ((size_t)n_scopes * (size_t)count + 1) * sizeof(struct scope *));
  for (int i = 0; i < n_scopes; i++)
    for (int k = 0; k < count; k++) run->call->scopes[i * count + k] = call->scopes[i * call->count + first + k];
  region_append(graph, to, run);
  for (int i = 0; i < node->n_outputs; i++) {
    struct value *output = node_output(graph, run, node->outputs[i]->shape, node->outputs[i]->dtype);
    output->name = node->outputs[i]->name;
    output->differentiable = run->call->callee->results.items[i]->differentiable;
    split->map[node->outputs[i]->id] = output;
  }
  for (int i = 0; i < node->n_inputs && call->count > 1; i++)
    if (call->carry[i] >= 0) inputs[i] = run->outputs[call->carry[i]];
}

static void split_call(struct split *split, const struct node *node, const char *const *prefixes, struct region *to) {
  struct arena *arena = split->graph->arena;
  const struct call *call = node->call;
  struct value **inputs = arena_alloc(arena, ((size_t)node->n_inputs + 1) * sizeof *inputs);
  for (int i = 0; i < node->n_inputs; i++) inputs[i] = split->map[node->inputs[i]->id];
  for (int first = 0, end; first < call->count; first = end) {
    const char *own = signature(split, call->callee, weight_scopes(arena, call, first, prefixes));
    for (end = first + 1; end < call->count; end++)
      if (strcmp(own, signature(split, call->callee, weight_scopes(arena, call, end, prefixes))) != 0) break;
    split_run(split, node, first, end - first, prefixes, inputs, to);
  }
}

static void copy_operands(struct split *split, const struct region *from, const char *const *prefixes,
                          const bool *flags, struct region *to) {
  struct graph *graph = split->graph;
  for (int i = 0; i < from->inputs.count; i++) {
    const struct value *input = from->inputs.items[i];
    struct value *copy = region_input(graph, to, input->shape, input->dtype);
    copy->name = input->name;
    copy->differentiable = flags[i];
    split->map[input->id] = copy;
  }
  for (int i = 0; i < from->parameters.count; i++) {
    struct parameter parameter = from->parameters.items[i];
    const struct value *original = parameter.value;
    parameter.value = value_new(graph, to, VALUE_PARAMETER, i, original->shape, original->dtype);
    parameter.value->name = original->name;
    parameter.value->differentiable = treat(split, &from->parameters.items[i], prefixes).trains;
    split->map[original->id] = parameter.value;
    ARENA_PUSH(graph->arena, to->parameters, parameter);
  }
}

static struct region *split_region(struct split *split, const struct region *from, const char *const *prefixes,
                                   const bool *flags) {
  struct graph *graph = split->graph;
  struct region *to = region_new(graph->arena, from->function, from->where, from->n_scopes);
  to->name = from->name;
  copy_operands(split, from, prefixes, flags, to);
  struct text marks = text_in(graph->arena);
  sign_own(split, from, prefixes, &marks);
  for (int i = 0; i < from->nodes.count; i++) {
    if (from->nodes.items[i]->call != NULL)
      split_call(split, from->nodes.items[i], prefixes, to);
    else
      split_node(split, from->nodes.items[i], text_string(&marks), to);
  }
  for (int i = 0; i < from->results.count; i++)
    ARENA_PUSH(graph->arena, to->results, split->map[from->results.items[i]->id]);
  if (split->rules->finish != NULL) split->rules->finish(split->rules->context, to, text_string(&marks));
  struct region *known = graph_find_equal(graph, to);
  if (known != NULL) return known;
  name_values(graph->arena, to);
  graph_add(graph, to);
  return to;
}

void split_regions(struct graph *graph, const struct splitting *splitting) {
  static const char *const root[] = {""};
  struct split split = {.graph = graph, .rules = splitting};
  split.map = arena_alloc(graph->arena, ((size_t)graph->next_value + 1) * sizeof *split.map);
  const struct region *entry = graph->entry;
  bool *flags = arena_alloc(graph->arena, ((size_t)entry->inputs.count + 1) * sizeof *flags);
  graph->regions = NULL;
  graph->n_regions = graph->regions_capacity = 0;
  graph->entry = split_region(&split, entry, root, flags);
}
