#include "gen/plan/graph/prune.h"

#include "gen/ir/op.h"
#include "gen/ir/region.h"
#include "gen/plan/graph/uses.h"

struct pass {
  struct graph *graph;
  int *uses;      /* by value id */
  int *gone_over; /* by node id: calls of backward regions that differentiate this call, for what it saved */
};

/* Whether backward regions use what a region makes, or what its callees make. */
static bool saves(const struct pass *pass, const struct region *region) {
  for (int r = region->id + 1; r < pass->graph->n_regions; r++) {
    const struct region *backward = pass->graph->regions[r];
    for (int i = 0; i < backward->nodes.count && backward->forward == region; i++)
      for (int k = 0; k < backward->nodes.items[i]->n_inputs; k++)
        if (backward->nodes.items[i]->inputs[k]->region == region &&
            backward->nodes.items[i]->inputs[k]->kind == VALUE_RESULT)
          return true;
  }
  for (int i = 0; i < region->nodes.count; i++) {
    const struct node *node = region->nodes.items[i];
    if (node->call != NULL && pass->gone_over[node->id] > 0 && saves(pass, node->call->callee)) return true;
  }
  return false;
}

/* Whether a node assigns to parameters, or a call something that does. */
static bool assigns(const struct node *node) {
  if (node->call == NULL) return !node->discards && op_assigns(node->kind);
  const struct region *callee = node->call->callee;
  for (int i = 0; i < callee->nodes.count; i++)
    if (assigns(callee->nodes.items[i])) return true;
  return false;
}

/* Whether a backward region, or one that it calls, adds to gradients. */
static bool adds_gradients(const struct region *region) {
  if (region->gradients.count > 0) return true;
  for (int i = 0; i < region->nodes.count; i++) {
    const struct call *call = region->nodes.items[i]->call;
    if (call != NULL && adds_gradients(call->callee)) return true;
  }
  return false;
}

/* A call is for its results, for what it saves, or, of a backward region, for the gradients that it writes; and what
 * assigns to parameters is for that, where its region `runs` at all. */
static bool is_needed(const struct pass *pass, const struct node *node, bool runs) {
  if (node->call != NULL && node->call->forward != NULL && adds_gradients(node->call->callee)) return true;
  if (runs && assigns(node)) return true;
  if (node->call != NULL && pass->gone_over[node->id] > 0 && saves(pass, node->call->callee)) return true;
  for (int i = 0; i < node->n_outputs; i++)
    if (pass->uses[node->outputs[i]->id] > 0) return true;
  return false;
}

/* From the last node to the first, so that what only a removed node needed is removed too. */
static void prune_region(struct pass *pass, struct region *region, bool runs) {
  int end = region->nodes.count, kept = end;
  for (int i = end - 1; i >= 0; i--) {
    struct node *node = region->nodes.items[i];
    if (is_needed(pass, node, runs)) {
      region->nodes.items[--kept] = node;
      continue;
    }
    for (int k = 0; k < node->n_inputs; k++) pass->uses[node->inputs[k]->id]--;
    if (node->call != NULL && node->call->forward != NULL) pass->gone_over[node->call->forward->id]--;
  }
  for (int i = kept; i < end; i++) region->nodes.items[i - kept] = region->nodes.items[i];
  region->nodes.count = end - kept;
}

/* ---- Results that no caller uses ---- */

static bool is_carried(const struct call *call, int result) {
  for (int i = 0; i < call->callee->inputs.count && call->count > 1; i++)
    if (call->carry[i] == result) return true;
  return false;
}

/* Whether nothing runs the region any more: a function of the model whose recomputation is all that is left of it, or a
 * backward that nobody wants. */
static bool is_uncalled(const struct pass *pass, const struct region *region) {
  bool copied = false;
  for (int r = region->id + 1; r < pass->graph->n_regions; r++) {
    const struct region *other = pass->graph->regions[r];
    copied |= other->forward == region;
    for (int i = 0; i < other->nodes.count; i++)
      if (other->nodes.items[i]->call != NULL && other->nodes.items[i]->call->callee == region) return false;
  }
  bool backward = region->forward != NULL && region->forward != pass->graph->entry;
  return backward || (copied && region != pass->graph->entry);
}

/* Whether result `index` of a region is used by none of its calls; false when nothing calls it. */
static bool is_dropped(const struct pass *pass, const struct region *callee, int index) {
  bool called = false;
  for (int r = callee->id + 1; r < pass->graph->n_regions; r++) {
    const struct region *region = pass->graph->regions[r];
    for (int i = 0; i < region->nodes.count; i++) {
      const struct node *node = region->nodes.items[i];
      if (node->call == NULL || node->call->callee != callee) continue;
      if (pass->uses[node->outputs[index]->id] > 0 || is_carried(node->call, index)) return false;
      called = true;
    }
  }
  return called;
}

/* Calls that were made of one have its table of carries together, so this one gets its own. */
static void drop_output(struct arena *arena, struct node *node, int index) {
  const int n = node->call->callee->inputs.count;
  int *carry = arena_alloc(arena, ((size_t)n + 1) * sizeof *carry);
  for (int i = index; i + 1 < node->n_outputs; i++) {
    node->outputs[i] = node->outputs[i + 1];
    node->outputs[i]->index = i;
  }
  node->n_outputs--;
  for (int i = 0; i < n; i++) carry[i] = node->call->carry[i] - (node->call->carry[i] > index);
  node->call->carry = carry;
}

static void drop_result(struct pass *pass, struct region *callee, int index) {
  pass->uses[callee->results.items[index]->id]--;
  for (int r = callee->id + 1; r < pass->graph->n_regions; r++)
    for (int i = 0; i < pass->graph->regions[r]->nodes.count; i++) {
      struct node *node = pass->graph->regions[r]->nodes.items[i];
      if (node->call != NULL && node->call->callee == callee) drop_output(pass->graph->arena, node, index);
    }
  for (int i = index; i + 1 < callee->results.count; i++) callee->results.items[i] = callee->results.items[i + 1];
  callee->results.count--;
}

static void clear(struct pass *pass, struct region *region) {
  for (int i = 0; i < region->results.count; i++) pass->uses[region->results.items[i]->id]--;
  region->results.count = 0;
  for (int i = 0; i < region->gradients.count; i++) pass->uses[region->gradients.items[i].value->id]--;
  region->gradients.count = 0;
}

void prune(struct graph *graph) {
  struct pass pass = {.graph = graph, .uses = count_uses(graph->arena, graph)};
  pass.gone_over = arena_alloc(graph->arena, ((size_t)graph->next_node + 1) * sizeof *pass.gone_over);
  for (int r = 0; r < graph->n_regions; r++)
    for (int i = 0; i < graph->regions[r]->nodes.count; i++) {
      const struct call *call = graph->regions[r]->nodes.items[i]->call;
      if (call != NULL && call->forward != NULL) pass.gone_over[call->forward->id]++;
    }
  /* Callers and backward regions are after the regions whose values they use. */
  for (int r = graph->n_regions - 1; r >= 0; r--) {
    struct region *region = graph->regions[r];
    for (int i = region->results.count - 1; i >= 0; i--)
      if (is_dropped(&pass, region, i)) drop_result(&pass, region, i);
    bool runs = !is_uncalled(&pass, region);
    if (!runs) clear(&pass, region);
    prune_region(&pass, region, runs);
  }
}
