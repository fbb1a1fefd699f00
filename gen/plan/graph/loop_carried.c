#include "gen/plan/graph/loop_carried.h"

#include <string.h>

#include "gen/ir/names.h"
#include "gen/ir/op.h"
#include "gen/ir/region.h"
#include "gen/ops/support/nodes.h"
#include "gen/plan/graph/rewrites.h"
#include "gen/plan/graph/sums.h"
#include "gen/plan/graph/uses.h"

/* The copy in 16 bits that a region makes of one of its values; NULL where it makes none, or loops over elements take
 * it, which read the value as well as a copy. */
static struct node *copy_of(const struct region *region, const struct value *value) {
  for (int i = 0; i < region->nodes.count; i++) {
    struct node *node = region->nodes.items[i];
    if (!node->kind->types.converts || node->inputs[0] != value || node->again) continue;
    if (dtype_is_bits16(node->outputs[0]->dtype) && !goes_to_loops(region, node->outputs[0])) return node;
  }
  return NULL;
}

/* Whether what makes the value can write a copy in addition, and has none to write. */
static bool can_copy(const struct region *region, const struct value *value) {
  return value->kind == VALUE_RESULT && value->region == region && value->index == 0 &&
         rewrite_begins_at(fuse_copy_after, value->producer->kind) && copy_of(region, value) == NULL;
}

/* The same conversion of another value, at position `index` of a region. */
static struct value *convert(struct graph *graph, const struct node *copy, struct value *value, struct region *region,
                             int index) {
  struct node *node = node_new(graph, copy->kind, &value, 1, copy->where);
  node->autocast = copy->autocast;
  region_insert(graph, region, index, node);
  struct value *made = node_output(graph, node, value->shape, copy->outputs[0]->dtype);
  made->name = value_typed_name(graph->arena, value, made->dtype);
  return made;
}

/* A carried value more: what the first iteration takes, and in the callee what each takes and gives. */
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
  struct value *last = node_output(graph, node, taken->shape, taken->dtype);
  for (int i = node->n_outputs - 1; i >= call->callee->results.count; i--) { /* histories are after results */
    node->outputs[i] = node->outputs[i - 1];
    node->outputs[i]->index = i;
  }
  last->index = call->callee->results.count - 1;
  node->outputs[last->index] = last;
}

/* A loop that saves nothing of its iterations, whose region is no other's. */
static bool carry_in(struct graph *graph, struct node *node) {
  const struct call *call = node->call;
  bool any = false;
  if (call == NULL || call->count == 1 || call->n_histories > 0) return false;
  if (graph_only_call(graph, call->callee) != node) return false;
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

/* ---- Sums ---- */

/* A loop whose iterations end with an addition and begin with what can take one up. */
struct loop_residual {
  struct node *loop, *sum;
  int input;             /* of the loop's, that carries the sum */
  int first;             /* of the sum's operands, the one that replaces the sum: 0 or 1 */
  struct region *back;   /* the callee's backward; NULL: none */
  struct value *history; /* of the carried value, as the backward takes it in its iterations; NULL: none */
};

/* What the backward's region has for a history of the loop, where nobody else takes that; NULL where others do. */
static struct value *taken_back(const struct graph *graph, const struct node *loop, const struct value *history) {
  struct value *found = NULL;
  for (int r = 0; r < graph->n_regions; r++)
    for (int i = 0; i < graph->regions[r]->nodes.count; i++) {
      const struct node *node = graph->regions[r]->nodes.items[i];
      for (int k = 0; k < node->n_inputs; k++) {
        if (node->inputs[k] != history) continue;
        if (found != NULL || node->call == NULL || node->call->forward != loop) return NULL;
        found = node->call->callee->inputs.items[k];
      }
    }
  return found;
}

/* Whether the first node that takes the value can add what makes it. */
static bool begins_with_norm(const struct region *region, const struct value *value) {
  for (int i = 0; i < region->results.count; i++)
    if (region->results.items[i] == value) return false;
  for (int i = 0; i < region->nodes.count; i++) {
    const struct node *node = region->nodes.items[i];
    for (int k = 0; k < node->n_inputs; k++)
      if (node->inputs[k] == value) return k == 0 && rewrite_begins_at(fuse_sum_before, node->kind) && !node->again;
  }
  return false;
}

/* Whether an operand of the sum is in memory of its own, or would have to be. */
static bool is_written(const int *uses, const struct region *region, const struct value *value) {
  return value->kind == VALUE_RESULT && value->region == region &&
         (value->producer->kind->class == OP_KERNEL || value->producer->kind->class == OP_CALL ||
          (value->producer->kind->class == OP_ELEMENTWISE && uses[value->id] > 1));
}

/* Whether the backward, where there is one, reads the first operand alone of what makes the sum, and reads a
 * history that can store it. */
static bool suits_backward(const struct graph *graph, struct loop_residual *found, const int *uses) {
  const struct call *call = found->loop->call;
  const struct value *carried = found->sum->inputs[found->first], *other = found->sum->inputs[!found->first];
  int history = history_index(call, found->input);
  found->back = graph_backward_of(graph, call->callee);
  if (uses[other->id] != 1) return false;
  if (found->back == NULL) return history < 0;
  if (history < 0 || !value_is_used(found->back, carried, NULL)) return false;
  found->history = taken_back(graph, found->loop, found->loop->outputs[call->callee->results.count + history]);
  return found->history != NULL && found->history->region == found->back;
}

static bool find_residual(const struct graph *graph, struct node *loop, int input, const int *uses,
                          struct loop_residual *found) {
  const struct region *callee = loop->call->callee;
  const struct value *taken = callee->inputs.items[input], *given = callee->results.items[loop->call->carry[input]];
  if (given->kind != VALUE_RESULT || given->region != callee || uses[given->id] != 1) return false;
  if (!op_is_sum(given->producer) || given->producer->again || !begins_with_norm(callee, taken)) return false;
  *found = (struct loop_residual){.loop = loop, .sum = given->producer, .input = input};
  for (int i = 0; i < 2; i++)
    if (!is_written(uses, callee, found->sum->inputs[i])) return false;
  for (found->first = 0; found->first < 2; found->first++)
    if (found->sum->inputs[found->first]->dtype == taken->dtype && suits_backward(graph, found, uses)) return true;
  return false;
}

/* The same addition of others, at position `index` of a region: `first` instead of its first operand. Who took `old`
 * takes the result. */
static struct value *add_again(struct graph *graph, const struct loop_residual *found, struct value *first,
                               struct value *other, struct region *region, int index) {
  struct value *operands[2] = {0};
  operands[found->first] = first;
  operands[!found->first] = other;
  struct node *sum = node_new(graph, found->sum->kind, operands, 2, found->sum->where);
  sum->autocast = found->sum->autocast;
  region_insert(graph, region, index, sum);
  struct value *made = node_output(graph, sum, first->shape, found->sum->outputs[0]->dtype);
  made->differentiable = first->differentiable;
  made->name = first->name;
  region_replace(region, first, made);
  sum->inputs[found->first] = first;
  return made;
}

static struct value *zeros(struct builder *builder, const struct value *like, const struct node *before) {
  struct region *region = before->region;
  int end = region->nodes.count;
  builder_enter(builder, region);
  struct value *made = builder_cast(builder, op_constant(builder, 0, like->shape), like->dtype);
  made->name = "zeros";
  builder_leave(builder);
  for (int i = end; i < region->nodes.count; i++) {
    struct node *node = region->nodes.items[i];
    region_remove(region, node);
    region_insert(builder_graph(builder), region, region_position(before), node);
  }
  return made;
}

static void carry_residual(struct builder *builder, const struct loop_residual *found) {
  struct graph *graph = builder_graph(builder);
  struct arena *arena = graph->arena;
  struct node *loop = found->loop;
  struct call *call = loop->call;
  struct region *callee = call->callee, *region = loop->region;
  struct value *carried = found->sum->inputs[found->first], *other = found->sum->inputs[!found->first];
  struct value *taken = callee->inputs.items[found->input], *last = loop->outputs[call->carry[found->input]];
  struct value *added = value_new(graph, callee, VALUE_INPUT, 0, other->shape, other->dtype);

  struct value *sum = add_again(graph, found, taken, added, callee, 0);
  taken->name = arena_printf(arena, "%s_before", sum->name);
  added->name = arena_printf(arena, "%s_added", sum->name);
  callee->results.items[call->carry[found->input]] = carried;
  region_remove(callee, found->sum);
  if (found->back != NULL) {
    int history = history_index(call, found->input);
    region_replace(found->back, found->history, sum);
    region_replace(found->back, carried, found->history);
    found->history->name = carried->name;
    if (call->after == NULL) call->after = arena_alloc(arena, (size_t)call->n_histories * sizeof *call->after);
    call->after[history] = true;
    loop->outputs[callee->results.count + history]->name = arena_printf(arena, "%s_of_%s", taken->name, callee->name);
  }
  carry(graph, loop, zeros(builder, other, loop), added, other);
  struct value *whole =
      add_again(graph, found, last, loop->outputs[callee->results.count - 1], region, region_position(loop) + 1);
  last->name = carried->name;
  loop->outputs[callee->results.count - 1]->name = other->name;
  struct region *back = graph_backward_of(graph, region);
  if (back != NULL) region_replace(back, last, whole);
  name_values(arena, callee);
  name_values(arena, region);
  if (found->back != NULL) name_values(arena, found->back);
}

static bool carry_residual_in(struct builder *builder, struct node *loop) {
  const struct graph *graph = builder_graph(builder);
  const struct call *call = loop->call;
  struct loop_residual found;
  if (call == NULL || call->count == 1 || call->forward != NULL || call->callee->recompute) return false;
  if (graph_only_call(graph, call->callee) != loop) return false;
  const int *uses = count_uses(graph->arena, graph);
  for (int i = 0; i < loop->n_inputs; i++) {
    if (call->carry[i] < 0 || !find_residual(graph, loop, i, uses, &found)) continue;
    carry_residual(builder, &found);
    return true;
  }
  return false;
}

bool carry_residuals(struct builder *builder) {
  const struct graph *graph = builder_graph(builder);
  bool any = false;
  for (int r = 0; r < graph->n_regions; r++)
    for (int i = 0; i < graph->regions[r]->nodes.count; i++)
      any |= carry_residual_in(builder, graph->regions[r]->nodes.items[i]);
  return any;
}
