#include "gen/ir/loops.h"

#include "gen/ir/outline.h"
#include "gen/ir/region.h"

/* The one node of each iteration, when all iterations are one call; false otherwise. */
static bool loop_calls(const struct region *region, const struct loop *loop, struct node **calls) {
  for (int i = 0; i < loop->count; i++) {
    int from = loop->starts[i], to = i + 1 < loop->count ? loop->starts[i + 1] : loop->end;
    calls[i] = NULL;
    for (int k = 0; k < region->nodes.count; k++) {
      struct node *node = region->nodes.items[k];
      if (node->id < from || node->id >= to) continue;
      if (calls[i] != NULL || node->call == NULL || node->call->count != 1) return false;
      calls[i] = node;
    }
    if (calls[i] == NULL || calls[i]->call->callee != calls[0]->call->callee) return false;
  }
  return true;
}

/* Which result of the iteration before each input is; false when an input is neither that nor the same for all. */
static bool find_carries(struct node *const *calls, int count, int *carry) {
  int carried = 0;
  for (int i = 0; i < calls[0]->n_inputs; i++) {
    carry[i] = -1;
    for (int r = 0; r < calls[0]->n_outputs && carry[i] < 0; r++)
      if (calls[1]->inputs[i] == calls[0]->outputs[r]) carry[i] = r;
    for (int k = 1; k < count; k++) {
      const struct value *expected = carry[i] >= 0 ? calls[k - 1]->outputs[carry[i]] : calls[0]->inputs[i];
      if (calls[k]->inputs[i] != expected) return false;
    }
    for (int j = 0; j < i; j++)
      if (carry[i] >= 0 && carry[j] == carry[i]) return false;
    carried += carry[i] >= 0;
  }
  /* A result that the next iteration does not take would have a gradient in the last iteration alone. */
  return carried == calls[0]->n_outputs;
}

static bool used_elsewhere(const struct region *region, const struct node *maker, const struct node *allowed) {
  for (int i = 0; i < maker->n_outputs; i++)
    if (value_is_used(region, maker->outputs[i], allowed)) return true;
  return false;
}

static void roll_loop(struct graph *graph, struct region *region, const struct loop *loop) {
  int count = loop->count;
  if (count < 2) return;
  struct node **calls = arena_alloc(graph->arena, (size_t)count * sizeof(struct node *));
  if (!loop_calls(region, loop, calls)) return;
  int *carry = arena_alloc(graph->arena, ((size_t)calls[0]->n_inputs + 1) * sizeof(int));
  if (!find_carries(calls, count, carry)) return;
  for (int k = 0; k + 1 < count; k++)
    if (used_elsewhere(region, calls[k], calls[k + 1])) return;
  int n_scopes = calls[0]->call->callee->n_scopes;
  struct scope **scopes = arena_alloc(graph->arena, ((size_t)n_scopes * (size_t)count + 1) * sizeof *scopes);
  for (int i = 0; i < n_scopes; i++) {
    for (int k = 0; k < count; k++) scopes[i * count + k] = calls[k]->call->scopes[i];
    if (!scopes_progress(scopes + i * count, count)) return;
  }
  /* The last call stays, so that what follows the loop still finds its results. */
  struct node *rolled = calls[count - 1];
  rolled->inputs = calls[0]->inputs;
  rolled->call->count = count;
  rolled->call->scopes = scopes;
  rolled->call->carry = carry;
  for (int k = 0; k + 1 < count; k++) region_remove(region, calls[k]);
}

/* A loop inside of another began after it, and is rolled before it. */
void roll_loops(struct graph *graph, struct region *region, const struct loop_list *loops) {
  for (int i = loops->count - 1; i >= 0; i--) {
    outline_loop(graph, region, &loops->items[i]);
    roll_loop(graph, region, &loops->items[i]);
  }
}
