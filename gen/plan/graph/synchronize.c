#include "gen/plan/graph/synchronize.h"

#include "gen/ir/op.h"
#include "gen/ir/region.h"

static void spread(struct program *program, struct node *node) {
  struct shape shapes[MAX_OUTPUTS];
  enum dtype dtypes[MAX_OUTPUTS];
  const char *error;
  node->kind = node->kind->ranks.over_ranks;
  node->attributes[node->n_attributes++] = attribute_int("ranks", job_data_ranks(program->job));
  int before = node->n_outputs, count = node->kind->infer(program->arena, node, shapes, dtypes, &error);
  for (int i = before; i < count; i++)
    node_output(program->graph, node, shapes[i], dtypes[i])->name = node->kind->output_names[i];
}

bool synchronize(struct program *program, struct diagnostics *diags) {
  struct graph *graph = program->graph;
  bool found = false;
  if (!program->job->parallelism.sync_batch_norm) return true;
  for (int r = 0; r < graph->n_regions; r++)
    for (int i = 0; i < graph->regions[r]->nodes.count; i++) {
      struct node *node = graph->regions[r]->nodes.items[i];
      if (node->kind->ranks.over_ranks == NULL) continue;
      found = true;
      if (job_data_ranks(program->job) > 1) spread(program, node);
    }
  if (found) return true;
  diag_error(diags, job_where(program->job, "parallelism.sync_batch_norm"),
             "the model has no batch normalisation that ranks could have in common");
  diag_help(diags, "leave it out");
  return false;
}
