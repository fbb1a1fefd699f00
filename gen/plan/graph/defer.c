#include "gen/plan/graph/defer.h"

#include "gen/ir/region.h"
#include "gen/plan/graph/stages.h"

/* Whether a call of a backward region differentiates layers of the pipeline, itself or in what it calls. */
static bool reaches_layers(const struct pipeline *pipeline, const struct node *node) {
  if (node->call == NULL) return false;
  if (node->call->forward != NULL && stage_of_layers(pipeline, node->call->forward) >= 0) return true;
  const struct region *callee = node->call->callee;
  for (int i = 0; i < callee->nodes.count; i++)
    if (reaches_layers(pipeline, callee->nodes.items[i])) return true;
  return false;
}

/* Whether a node may run later at all. A call with results has gradients of inputs to make, of which only other
 * gradients of parameters may be made, as before the first layer: they need weights, which are not there later where
 * ranks gather them for a layer at a time. */
static bool may_be_deferred(const struct program *program, const struct node *node) {
  if (node->call == NULL) return true;
  return node->call->callee->results.count == 0 && !reaches_layers(&program->ranks.pipeline, node);
}

/* From the last node to the first. needed: by value id. */
static void defer_in(const struct program *program, struct region *backward, bool *needed) {
  for (int i = 0; i < backward->results.count; i++) needed[backward->results.items[i]->id] = true;
  for (int i = backward->nodes.count - 1; i >= 0; i--) {
    struct node *node = backward->nodes.items[i];
    node->deferred = may_be_deferred(program, node);
    for (int k = 0; k < node->n_outputs; k++) node->deferred &= !needed[node->outputs[k]->id];
    for (int k = 0; k < node->n_inputs && !node->deferred; k++) needed[node->inputs[k]->id] = true;
  }
}

void defer_weight_gradients(struct program *program) {
  const struct graph *graph = program->graph;
  if (program->ranks.pipeline.stages == 0 || program->job->parallelism.pp_schedule != SCHEDULE_ZERO_BUBBLE) return;
  bool *needed = arena_alloc(program->arena, ((size_t)graph->next_value + 1) * sizeof *needed);
  for (int r = 0; r < graph->n_regions; r++)
    if (graph->regions[r]->forward != NULL) defer_in(program, graph->regions[r], needed);
}
