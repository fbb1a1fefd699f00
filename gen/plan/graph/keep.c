#include "gen/plan/graph/keep.h"

#include "gen/plan/graph/weight_walk.h"
#include "gen/program/match.h"

/* What is known of a parameter so far, from the calls that have been walked. */
enum finding { UNSEEN, NARROW, KEPT };

struct walk {
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
static int matching(struct walk *walk, const char *name) {
  int found = -1;
  for (int i = 0; i < walk->job->precision.n_keep_in_fp32; i++) {
    if (!name_matches(walk->job->precision.keep_in_fp32[i].name, name)) continue;
    walk->used[i] = true;
    if (found < 0) found = i;
  }
  return found;
}

static void visit_parameter(struct walk *walk, const struct region *region, int index, const char *name) {
  int pattern = matching(walk, name);
  enum finding now = pattern >= 0 ? KEPT : NARROW, *before = &walk->found[region->id][index];
  const char **first = &walk->first[region->id][index];
  if (walk->example == NULL) walk->example = name;
  if (*before == UNSEEN) {
    *before = now;
    *first = name;
  } else if (*before != now && walk->ok) {
    const char *kept = now == KEPT ? name : *first, *narrow = now == KEPT ? *first : name;
    diag_error(walk->diags, job_where(walk->job, "precision.keep_in_fp32"),
               "'precision.keep_in_fp32' names %s but not %s, and one piece of the program computes with both", kept,
               narrow);
    diag_help(walk->diags, "name all layers with a *, or none");
    walk->ok = false;
  }
}

static void visit(struct weight_walk *calls, const struct region *region, const struct node *after,
                  const char *const *prefixes) {
  for (int i = 0; after == NULL && i < region->parameters.count; i++) {
    const struct parameter *parameter = &region->parameters.items[i];
    visit_parameter(calls->context, region, i,
                    weight_path(calls->program->arena, prefixes[parameter->scope], parameter->path));
  }
}

static const bool **as_table(struct walk *walk, const struct graph *graph) {
  const bool **table = arena_alloc(walk->arena, ((size_t)graph->n_regions + 1) * sizeof *table);
  for (int r = 0; r < graph->n_regions; r++) {
    int count = graph->regions[r]->parameters.count;
    bool *row = arena_alloc(walk->arena, ((size_t)count + 1) * sizeof *row);
    for (int i = 0; i < count; i++) row[i] = walk->found[r][i] == KEPT;
    table[r] = row;
  }
  return table;
}

bool kept_parameters(struct program *program, struct diagnostics *diags, const bool ***kept) {
  const struct graph *graph = program->graph;
  const struct job *job = program->job;
  struct walk walk = {.arena = graph->arena, .job = job, .diags = diags, .ok = true};
  int n = job->precision.n_keep_in_fp32;
  *kept = NULL;
  if (n == 0) return true;
  walk.used = arena_alloc(walk.arena, ((size_t)n + 1) * sizeof *walk.used);
  walk.found = arena_alloc(walk.arena, ((size_t)graph->n_regions + 1) * sizeof *walk.found);
  walk.first = arena_alloc(walk.arena, ((size_t)graph->n_regions + 1) * sizeof *walk.first);
  for (int r = 0; r < graph->n_regions; r++) {
    size_t count = (size_t)graph->regions[r]->parameters.count + 1;
    walk.found[r] = arena_alloc(walk.arena, count * sizeof **walk.found);
    walk.first[r] = arena_alloc(walk.arena, count * sizeof **walk.first);
  }
  struct weight_walk calls = {.program = program, .diags = diags, .ok = true, .visit = visit, .context = &walk};
  weight_walk_from(&calls, graph->entry);
  for (int i = 0; i < n; i++) {
    const struct named *pattern = &job->precision.keep_in_fp32[i];
    if (walk.used[i]) continue;
    diag_error(diags, pattern->where, "no parameter's name matches '%s'", pattern->name);
    if (walk.example != NULL) diag_help(diags, "names are such as %s", walk.example);
    walk.ok = false;
  }
  *kept = as_table(&walk, graph);
  return walk.ok;
}
