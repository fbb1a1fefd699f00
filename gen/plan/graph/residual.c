#include "gen/plan/graph/residual.h"

#include "gen/ir/op.h"
#include "gen/ir/region.h"

struct spread {
  struct residual *residual;
  bool *split; /* by value id: over positions */
  bool changed;
};

static const struct placement whole = {.form = PLACED_WHOLE};

static void split(struct spread *spread, const struct value *value, struct placement placement) {
  if (placement_of(spread->residual->placements, value).form == PLACED_SPLIT) return;
  spread->residual->placements->values[value->id] = placement;
  spread->split[value->id] = spread->changed = true;
}

/* The sum of what ranks compute of a matmul; or have of a vocabulary, where they can divide it: a decoder's first token
 * is one position. */
static bool split_sum(struct spread *spread, const struct node *node) {
  struct residual *residual = spread->residual;
  const struct placement *operands = residual->nodes[node->id];
  const struct value *sum = node->outputs[0];
  if (operands == NULL || operands[node->n_inputs].form != PLACED_PARTIAL) return true;
  const bool matmul = node->kind->library.matmul;
  if (sum->shape.rank < (matmul ? 2 : 3)) return true;
  const struct placement rows = placement_split(sum->shape.rank - 2, 1);
  if (!placement_fits(rows, sum->shape, residual->placements->ranks)) {
    if (matmul) residual->uneven = node;
    return !matmul;
  }
  split(spread, sum, rows);
  return true;
}

/* A node that computes positions alone computes a rank's. */
static void spread_node(struct spread *spread, const struct node *node) {
  struct residual *residual = spread->residual;
  int n = node->n_inputs, seed = n;
  if (residual->nodes[node->id] != NULL || node->kind->library.matmul || !node->outputs[0]->differentiable) return;
  struct placement *operands = arena_alloc(residual->placements->program->arena, ((size_t)n + 1) * sizeof *operands);
  for (int i = n - 1; i >= 0; i--) {
    operands[i] = whole;
    if (spread->split[node->inputs[i]->id]) seed = i;
  }
  if (seed == n) return;
  operands[seed] = placement_of(residual->placements, node->inputs[seed]);
  if (!op_place(node, seed, residual->placements->ranks, operands) || operands[n].form != PLACED_SPLIT) return;
  for (int i = 1; i < node->n_outputs; i++)
    if (value_is_used(node->region, node->outputs[i], NULL)) return;
  residual->nodes[node->id] = operands;
  split(spread, node->outputs[0], operands[n]);
}

/* What a region gets split it has split in all its calls. */
static void spread_call(struct spread *spread, const struct node *node) {
  const struct placements *placements = spread->residual->placements;
  const struct call *call = node->call;
  struct placement *results = spread->residual->results[call->callee->id];
  for (int i = 0; i < node->n_inputs; i++) {
    const struct value *formal = call->callee->inputs.items[i];
    int carried = call->count > 1 ? call->carry[i] : -1;
    if (spread->split[node->inputs[i]->id]) split(spread, formal, placement_of(placements, node->inputs[i]));
    if (carried >= 0 && spread->split[call->callee->results.items[carried]->id])
      split(spread, formal, results[carried]);
    if (carried >= 0 && spread->split[formal->id]) results[carried] = placement_of(placements, formal);
  }
  for (int i = 0; i < call->callee->results.count; i++)
    if (results[i].form == PLACED_SPLIT) split(spread, node->outputs[i], results[i]);
}

/* What the entry gives is whole. */
static void spread_results(struct spread *spread, const struct region *region) {
  struct residual *residual = spread->residual;
  if (region == residual->placements->program->graph->entry) return;
  for (int i = 0; i < region->results.count; i++) {
    const struct value *result = region->results.items[i];
    if (spread->split[result->id]) residual->results[region->id][i] = placement_of(residual->placements, result);
  }
}

bool split_residual(struct residual *residual) {
  const struct graph *graph = residual->placements->program->graph;
  struct arena *arena = graph->arena;
  struct spread spread = {.residual = residual, .changed = true};
  spread.split = arena_alloc(arena, ((size_t)graph->next_value + 1) * sizeof *spread.split);
  for (int r = 0; r < graph->n_regions; r++)
    for (int i = 0; i < graph->regions[r]->nodes.count; i++)
      if (graph->regions[r]->nodes.items[i]->call == NULL && !split_sum(&spread, graph->regions[r]->nodes.items[i]))
        return false;
  while (spread.changed) {
    spread.changed = false;
    for (int r = 0; r < graph->n_regions; r++) {
      for (int i = 0; i < graph->regions[r]->nodes.count; i++) {
        const struct node *node = graph->regions[r]->nodes.items[i];
        if (node->call != NULL)
          spread_call(&spread, node);
        else
          spread_node(&spread, node);
      }
      spread_results(&spread, graph->regions[r]);
    }
  }
  return true;
}
