#include "gen/plan/graph/resident.h"

#include <string.h>

#include "gen/ir/region.h"
#include "gen/plan/graph/weight_visitor.h"
#include "gen/program/weights.h"

/* By region id and scope: the scope of what stays there; 0: there is nothing. */
struct separation {
  struct program *program;
  int **formals;
};

static bool stays(const struct program *program, const struct parameter *parameter) {
  return parameter->passing || (program->kind == PROGRAM_TRAIN && parameter->value->differentiable);
}

static bool is_entry(const struct separation *s, const struct region *region) {
  return region == s->program->graph->entry || region == s->program->entry.second_region;
}

/* The scope of what stays below scope `formal` of a region, which is made where it is the first. */
static int resident_formal(const struct separation *s, struct region *region, int formal) {
  int *made = &s->formals[region->id][formal];
  if (*made == 0) *made = region->n_scopes++;
  return *made;
}

/* Where what stays of a scope of a called region is. */
static struct scope *resident_of(const struct separation *s, struct region *region, const struct scope *scope) {
  struct arena *arena = s->program->arena;
  struct scope *made = arena_alloc(arena, sizeof *made);
  *made = *scope;
  if (is_entry(s, region))
    made->path = weight_path(arena, resident_scope(s->program), scope->path);
  else
    made->formal = resident_formal(s, region, scope->formal);
  return made;
}

static void extend_call(const struct separation *s, struct region *region, struct call *call, int n_before) {
  const struct region *callee = call->callee;
  if (callee->n_scopes == n_before) return;
  const size_t count = (size_t)call->count;
  struct scope **scopes = arena_alloc(s->program->arena, (size_t)callee->n_scopes * count * sizeof *scopes);
  memcpy(scopes, call->scopes, (size_t)n_before * count * sizeof *scopes);
  for (int formal = 0; formal < n_before; formal++) {
    const size_t own = (size_t)s->formals[callee->id][formal];
    for (size_t i = 0; i < count && own > 0; i++)
      scopes[own * count + i] = resident_of(s, region, call->scopes[(size_t)formal * count + i]);
  }
  call->scopes = scopes;
}

static void separate(const struct separation *s, struct region *region, const int *n_before) {
  for (int i = 0; i < region->parameters.count && !is_entry(s, region); i++) {
    struct parameter *parameter = &region->parameters.items[i];
    if (stays(s->program, parameter)) parameter->scope = resident_formal(s, region, parameter->scope);
  }
  for (int i = 0; i < region->nodes.count; i++) {
    struct call *call = region->nodes.items[i]->call;
    if (call != NULL) extend_call(s, region, call, n_before[call->callee->id]);
  }
}

/* Callees are before their callers. */
void separate_resident(struct program *program) {
  const struct graph *graph = program->graph;
  struct arena *arena = program->arena;
  struct separation s = {program, arena_alloc(arena, ((size_t)graph->n_regions + 1) * sizeof(int *))};
  int *n_before = arena_alloc(arena, ((size_t)graph->n_regions + 1) * sizeof *n_before);
  for (int i = 0; i < graph->n_regions; i++) {
    n_before[i] = graph->regions[i]->n_scopes;
    s.formals[i] = arena_alloc(arena, ((size_t)n_before[i] + 1) * sizeof(int));
  }
  for (int i = 0; i < graph->n_regions; i++) separate(&s, graph->regions[i], n_before);
}
