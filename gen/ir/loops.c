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

/* ---- Iterations that are alike ---- */

/* Whether iteration `i` of a loop made the node. */
static bool is_of(const struct loop *loop, int i, const struct node *node) {
  return node->id >= loop->starts[i] && node->id < (i + 1 < loop->count ? loop->starts[i + 1] : loop->end);
}

/* The region's nodes that iteration `i` of a loop made; NULL at the end. */
static const struct node *node_of_iteration(const struct region *region, const struct loop *loop, int i, int *at) {
  while (*at < region->nodes.count)
    if (is_of(loop, i, region->nodes.items[(*at)++])) return region->nodes.items[*at - 1];
  return NULL;
}

/* An iteration whose input needs no gradient has another backward: one that starts from a constant is not alike to
 * those after it, which are a loop without it. */
static bool value_alike(const struct value *a, const struct value *b) {
  return shape_equal(a->shape, b->shape) && a->dtype == b->dtype && a->differentiable == b->differentiable;
}

static bool node_alike(const struct node *a, const struct node *b) {
  if (a->kind != b->kind) return false;
  if (a->call != NULL && (a->call->callee != b->call->callee || a->call->count != b->call->count)) return false;
  if (a->n_inputs != b->n_inputs || a->n_outputs != b->n_outputs) return false;
  for (int i = 0; i < a->n_inputs; i++)
    if (!value_alike(a->inputs[i], b->inputs[i])) return false;
  for (int i = 0; i < a->n_outputs; i++)
    if (!value_alike(a->outputs[i], b->outputs[i])) return false;
  return true;
}

/* Whether two iterations may be of one loop: the same nodes over values of the same types. */
static bool iterations_alike(const struct region *region, const struct loop *loop, int i, int k) {
  for (int p = 0, q = 0;;) {
    const struct node *a = node_of_iteration(region, loop, i, &p), *b = node_of_iteration(region, loop, k, &q);
    if (a == NULL || b == NULL) return a == b;
    if (!node_alike(a, b)) return false;
  }
}

/* Whether only the iteration that made a value, number `i`, and the next one take it. */
static bool stays_near(const struct region *region, const struct loop *loop, int i, const struct value *value) {
  for (int n = 0; n < region->nodes.count; n++) {
    const struct node *node = region->nodes.items[n];
    for (int k = 0; k < node->n_inputs; k++)
      if (node->inputs[k] == value && !is_of(loop, i, node) && !is_of(loop, i + 1, node)) return false;
  }
  for (int r = 0; r < region->results.count; r++)
    if (region->results.items[r] == value) return false;
  return true;
}

/* Whether iteration `i` takes nothing but parameters, what it or the one before it makes, and what the first one takes,
 * too. */
static bool takes_from_near(const struct region *region, const struct loop *loop, int i) {
  const struct node *node, *first;
  for (int at = 0, of_first = 0; (node = node_of_iteration(region, loop, i, &at)) != NULL;) {
    first = node_of_iteration(region, loop, 0, &of_first);
    for (int k = 0; k < node->n_inputs; k++) {
      const struct value *value = node->inputs[k];
      if (value->kind == VALUE_PARAMETER || value == first->inputs[k]) continue;
      if (value->kind == VALUE_INPUT) return false;
      if (!is_of(loop, i, value->producer) && !is_of(loop, i - 1, value->producer)) return false;
    }
  }
  return true;
}

/* Whether iterations give what they make to the next one alone, and share all else, as those of a loop that can be
 * rolled. */
static bool is_chain(const struct region *region, const struct loop *loop) {
  for (int i = 0; i + 1 < loop->count; i++) {
    const struct node *node;
    for (int at = 0; (node = node_of_iteration(region, loop, i, &at)) != NULL;)
      for (int k = 0; k < node->n_outputs; k++)
        if (!stays_near(region, loop, i, node->outputs[k])) return false;
    if (!takes_from_near(region, loop, i + 1)) return false;
  }
  return true;
}

/* A loop inside of another began after it, and is rolled before it. */
void roll_loops(struct graph *graph, struct region *region, const struct loop_list *loops) {
  for (int i = loops->count - 1; i >= 0; i--) {
    const struct loop *loop = &loops->items[i];
    for (int first = 0, next; first < loop->count; first = next) {
      for (next = first + 1; next < loop->count && iterations_alike(region, loop, first, next);) next++;
      struct loop run = {.starts = loop->starts + first, .count = next - first};
      run.end = next < loop->count ? loop->starts[next] : loop->end;
      if (run.count < loop->count && !is_chain(region, &run)) continue;
      outline_loop(graph, region, &run);
      roll_loop(graph, region, &run);
    }
  }
}
