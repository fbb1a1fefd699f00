#include "gen/plan/graph/keep_in_fp32.h"

#include "gen/plan/graph/weight_visitor.h"
#include "gen/program/match.h"

/* What is known of a parameter so far, from the calls that have been visited. */
enum finding { UNSEEN, REDUCED, FLOAT32 };

struct selection {
  struct arena *arena;
  const struct job *job;
  struct diagnostics *diags;
  enum finding **found; /* by region id and parameter */
  const char ***first;  /* the name that it was found under */
  bool *used;           /* by pattern */
  const char *example;  /* the first parameter's name */
  bool ok;
};

/* The first pattern that matches; -1 when none does. Every pattern that does counts as used. */
static int matching(struct selection *selection, const char *name) {
  int found = -1;
  for (int i = 0; i < selection->job->precision.n_keep_in_fp32; i++) {
    if (!name_matches(selection->job->precision.keep_in_fp32[i].name, name)) continue;
    selection->used[i] = true;
    if (found < 0) found = i;
  }
  return found;
}

static void visit_parameter(struct selection *selection, const struct region *region, int index, const char *name) {
  int pattern = matching(selection, name);
  enum finding now = pattern >= 0 ? FLOAT32 : REDUCED, *before = &selection->found[region->id][index];
  const char **first = &selection->first[region->id][index];
  if (selection->example == NULL) selection->example = name;
  if (*before == UNSEEN) {
    *before = now;
    *first = name;
  } else if (*before != now && selection->ok) {
    const char *wide = now == FLOAT32 ? name : *first, *narrow = now == FLOAT32 ? *first : name;
    diag_error(selection->diags, job_where(selection->job, "precision.keep_in_fp32"),
               "'precision.keep_in_fp32' names %s but not %s, and one function of the program computes with both", wide,
               narrow);
    diag_help(selection->diags, "name all layers with a *, or none");
    selection->ok = false;
  }
}

static void visit(struct weight_visitor *calls, const struct region *region, const struct node *after,
                  const char *const *prefixes) {
  for (int i = 0; after == NULL && i < region->parameters.count; i++) {
    const struct parameter *parameter = &region->parameters.items[i];
    visit_parameter(calls->context, region, i,
                    weight_path(calls->program->arena, prefixes[parameter->scope], parameter->path));
  }
}

static const bool **as_table(struct selection *selection, const struct graph *graph) {
  const bool **table = arena_alloc(selection->arena, ((size_t)graph->n_regions + 1) * sizeof *table);
  for (int r = 0; r < graph->n_regions; r++) {
    int count = graph->regions[r]->parameters.count;
    bool *row = arena_alloc(selection->arena, ((size_t)count + 1) * sizeof *row);
    for (int i = 0; i < count; i++) row[i] = selection->found[r][i] == FLOAT32;
    table[r] = row;
  }
  return table;
}

bool parameters_in_fp32(struct program *program, struct diagnostics *diags, const bool ***in_fp32) {
  const struct graph *graph = program->graph;
  const struct job *job = program->job;
  struct selection selection = {.arena = graph->arena, .job = job, .diags = diags, .ok = true};
  int n = job->precision.n_keep_in_fp32;
  *in_fp32 = NULL;
  if (n == 0) return true;
  selection.used = arena_alloc(selection.arena, ((size_t)n + 1) * sizeof *selection.used);
  selection.found = arena_alloc(selection.arena, ((size_t)graph->n_regions + 1) * sizeof *selection.found);
  selection.first = arena_alloc(selection.arena, ((size_t)graph->n_regions + 1) * sizeof *selection.first);
  for (int r = 0; r < graph->n_regions; r++) {
    size_t count = (size_t)graph->regions[r]->parameters.count + 1;
    selection.found[r] = arena_alloc(selection.arena, count * sizeof **selection.found);
    selection.first[r] = arena_alloc(selection.arena, count * sizeof **selection.first);
  }
  struct weight_visitor calls = {.program = program, .diags = diags, .ok = true, .visit = visit, .context = &selection};
  weight_visit_from(&calls, graph->entry);
  for (int i = 0; i < n; i++) {
    const struct named *pattern = &job->precision.keep_in_fp32[i];
    if (selection.used[i]) continue;
    diag_error(diags, pattern->where, "no parameter's name matches '%s'", pattern->name);
    if (selection.example != NULL) diag_help(diags, "names are such as %s", selection.example);
    selection.ok = false;
  }
  *in_fp32 = as_table(&selection, graph);
  return selection.ok;
}
