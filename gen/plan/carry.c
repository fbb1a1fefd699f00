#include "gen/plan/carry.h"

#include <string.h>

#include "gen/ir/names.h"
#include "gen/ir/op.h"
#include "gen/ir/region.h"
#include "gen/plan/uses.h"

static int count_calls(const struct graph *graph, const struct region *callee) {
  int count = 0;
  for (int r = 0; r < graph->n_regions; r++)
    for (int i = 0; i < graph->regions[r]->nodes.count; i++) {
      const struct call *call = graph->regions[r]->nodes.items[i]->call;
      count += call != NULL && call->callee == callee;
    }
  return count;
}

/* The copy in 16 bits that a region makes of one of its values; NULL where it makes none, or loops over elements take
 * it, which read the value as well as a copy. */
static struct node *copy_of(const struct region *region, const struct value *value) {
  for (int i = 0; i < region->nodes.count; i++) {
    struct node *node = region->nodes.items[i];
    if (!node->kind->converts || node->inputs[0] != value || node->again) continue;
    if (dtype_is_low(node->outputs[0]->dtype) && !goes_to_loops(region, node->outputs[0])) return node;
  }
  return NULL;
}

/* Whether what makes the value can write a copy beside it, and has none to write. */
static bool can_copy(const struct region *region, const struct value *value) {
  return value->kind == VALUE_RESULT && value->region == region && value->index == 0 &&
         value->producer->kind->with_low != NULL && copy_of(region, value) == NULL;
}

/* The same conversion of another value, at place `index` of a region. */
static struct value *convert(struct graph *graph, const struct node *copy, struct value *value, struct region *region,
                             int index) {
  struct node *node = node_new(graph, copy->kind, &value, 1, copy->where);
  node->autocast = copy->autocast;
  region_insert(graph, region, index, node);
  struct value *made = node_output(graph, node, value->shape, copy->outputs[0]->dtype);
  made->name = value_typed_name(graph->arena, value, made->dtype);
  return made;
}

/* A carried value more: what the first turn takes, and in the callee what each takes and gives. */
static void carry(struct graph *graph, struct node *node, struct value *first, struct value *taken,
                  struct value *given) {
  struct call *call = node->call;
  const int n = node->n_inputs++;
  struct value **inputs = arena_alloc(graph->arena, ((size_t)n + 1) * sizeof *inputs);
  int *carries = arena_alloc(graph->arena, ((size_t)n + 1) * sizeof *carries);
  bool *stacked = arena_alloc(graph->arena, ((size_t)n + 1) * sizeof *stacked);
  memcpy(inputs, node->inputs, (size_t)n * sizeof *inputs);
  memcpy(carries, call->carry, (size_t)n * sizeof *carries);
  if (call->stacked != NULL) memcpy(stacked, call->stacked, (size_t)n * sizeof *stacked);
  inputs[n] = first;
  carries[n] = call->callee->results.count;
  node->inputs = inputs;
  call->carry = carries;
  if (call->stacked != NULL) call->stacked = stacked;
  taken->kind = VALUE_INPUT;
  taken->producer = NULL;
  taken->index = n;
  ARENA_PUSH(graph->arena, call->callee->inputs, taken);
  ARENA_PUSH(graph->arena, call->callee->results, given);
  node_output(graph, node, taken->shape, taken->dtype);
}

/* Of a loop that keeps nothing of its turns, whose region is no other's. */
static bool carry_in(struct graph *graph, struct node *node) {
  const struct call *call = node->call;
  bool any = false;
  if (call == NULL || call->count == 1 || call->n_histories > 0 || count_calls(graph, call->callee) > 1) return false;
  struct region *callee = call->callee;
  for (int i = node->n_inputs - 1; i >= 0; i--) {
    if (call->carry[i] < 0) continue;
    struct value *result = callee->results.items[call->carry[i]];
    struct node *copy = copy_of(callee, callee->inputs.items[i]);
    if (copy == NULL || !can_copy(callee, result)) continue;
    struct value *first = convert(graph, copy, node->inputs[i], node->region, region_position(node));
    struct value *given = convert(graph, copy, result, callee, callee->nodes.count);
    region_remove(callee, copy);
    carry(graph, node, first, copy->outputs[0], given);
    any = true;
  }
  if (any) name_values(graph->arena, callee);
  if (any) name_values(graph->arena, node->region);
  return any;
}

bool carry_copies(struct graph *graph) {
  bool any = false;
  for (int r = 0; r < graph->n_regions; r++) {
    const struct region *region = graph->regions[r];
    for (int i = 0; i < region->nodes.count; i++) any |= carry_in(graph, region->nodes.items[i]);
  }
  return any;
}
