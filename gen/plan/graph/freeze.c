#include "gen/plan/graph/freeze.h"

#include "gen/ir/region.h"
#include "gen/plan/graph/split.h"
#include "gen/plan/graph/weight_visitor.h"
#include "gen/program/adapters.h"
#include "gen/program/match.h"

struct freezing {
  const struct job *job;
  bool *matches; /* by pattern */
  struct name_list names;
  bool trains; /* some parameter is left */
};

bool is_frozen(const struct job *job, const char *name) {
  if (job->model.lora.rank > 0 && !is_adapter(name) && !is_saved_module(job, name)) return true;
  for (int i = 0; i < job->model.n_freeze; i++)
    if (name_matches(job->model.freeze[i].name, name)) return true;
  return false;
}

static struct treatment treat(void *context, const struct parameter *parameter, const char *name) {
  (void)parameter;
  const struct freezing *freezing = context;
  bool frozen = is_frozen(freezing->job, name);
  return (struct treatment){.mark = frozen ? 'f' : 't', .trains = !frozen};
}

static void collect(struct weight_visitor *visitor, const struct region *region, const struct node *after,
                    const char *const *prefixes) {
  struct freezing *freezing = visitor->context;
  const struct job *job = freezing->job;
  for (int i = 0; after == NULL && i < region->parameters.count; i++) {
    const struct parameter *p = &region->parameters.items[i];
    const char *name = weight_path(visitor->program->arena, prefixes[p->scope], p->path);
    ARENA_PUSH(visitor->program->arena, freezing->names, name);
    freezing->trains |= p->value->differentiable && !is_frozen(job, name);
    for (int k = 0; k < job->model.n_freeze; k++) freezing->matches[k] |= name_matches(job->model.freeze[k].name, name);
  }
}

static bool check_patterns(struct freezing *freezing, struct program *program, struct diagnostics *diags) {
  const struct job *job = freezing->job;
  int before = diags->errors;
  for (int i = 0; i < job->model.n_freeze; i++)
    name_pattern_check(job->model.freeze[i].name, job->model.freeze[i].where, diags);
  if (diags->errors > before) return false;
  freezing->matches = arena_alloc(program->arena, ((size_t)job->model.n_freeze + 1) * sizeof(bool));
  struct weight_visitor visitor = {
      .program = program, .diags = diags, .ok = true, .visit = collect, .context = freezing};
  weight_visit_from(&visitor, program->graph->entry);
  for (int i = 0; i < job->model.n_freeze; i++)
    if (!freezing->matches[i])
      name_pattern_unmatched(program->arena, job->model.freeze[i].name, &freezing->names, job->model.freeze[i].where,
                             diags);
  if (diags->errors > before) return false;
  if (freezing->trains) return true;
  diag_error(diags, job->model.freeze[0].where, "all parameters are frozen: nothing is left to train");
  return false;
}

static bool has_gradients(const struct graph *graph) {
  for (int r = 0; r < graph->n_regions; r++)
    if (graph->regions[r]->gradients.count > 0) return true;
  return false;
}

bool check_trained(const struct program *program, struct diagnostics *diags) {
  const struct job *job = program->job;
  const struct region *entry = program->graph->entry;
  bool differentiated = graph_backward_of(program->graph, entry) != NULL;
  bool adapts = job->model.lora.rank > 0, freezes = job->model.n_freeze > 0;
  if (differentiated ? has_gradients(program->graph)
                     : entry->results.count < 1 || entry->results.items[0]->differentiable)
    return true;
  if (!adapts && !freezes) {
    diag_error(diags, entry->where, "the loss that '%s' returns depends on no parameter", entry->function);
    return false;
  }
  diag_error(diags, adapts ? job->model.lora.targets[0].where : job->model.freeze[0].where,
             "the loss depends on no parameter that is trained");
  diag_help(diags, adapts ? "name modules whose results the loss depends on" : "freeze fewer parameters");
  return false;
}

bool freeze(struct program *program, struct diagnostics *diags) {
  struct freezing freezing = {.job = program->job};
  if (program->job->model.n_freeze == 0 && program->job->model.lora.rank == 0) return true;
  if (!check_patterns(&freezing, program, diags)) return false;
  split_regions(program->graph, &(struct splitting){.context = &freezing, .treat = treat});
  return true;
}
