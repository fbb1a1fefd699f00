#include "gen/plan/graph/weight_walk.h"

#include "gen/ir/region.h"

const char *weight_path(struct arena *arena, const char *prefix, const char *path) {
  if (prefix[0] == '\0') return path;
  return path[0] == '\0' ? prefix : arena_printf(arena, "%s.%s", prefix, path);
}

const char *const *weight_scopes(struct arena *arena, const struct call *call, int iteration,
                                 const char *const *prefixes) {
  const char **inner = arena_alloc(arena, ((size_t)call->callee->n_scopes + 1) * sizeof *inner);
  for (int i = 0; i < call->callee->n_scopes; i++) {
    const struct scope *scope = call->scopes[i * call->count + iteration];
    inner[i] = weight_path(arena, prefixes[scope->formal], scope->path);
  }
  return inner;
}

bool weight_scope_is_used(const struct region *region, int formal,
                          bool (*counts)(const void *context, const struct parameter *parameter), const void *context) {
  if (region->forward != NULL) region = region->forward;
  for (int i = 0; i < region->parameters.count; i++) {
    const struct parameter *parameter = &region->parameters.items[i];
    if (parameter->scope == formal && (counts == NULL || counts(context, parameter))) return true;
  }
  for (int i = 0; i < region->nodes.count; i++) {
    const struct call *call = region->nodes.items[i]->call;
    for (int k = 0; call != NULL && k < call->callee->n_scopes; k++)
      if (call->scopes[k * call->count]->formal == formal && weight_scope_is_used(call->callee, k, counts, context))
        return true;
  }
  return false;
}

static void walk_region(struct weight_walk *walk, const struct region *region, const char *const *prefixes);

static void walk_call(struct weight_walk *walk, const struct node *node, const char *const *prefixes) {
  const struct call *call = node->call;
  for (int k = 0; k < call->count; k++) {
    int iteration = call->forward != NULL ? call->count - 1 - k : k;
    walk_region(walk, call->callee, weight_scopes(walk->program->arena, call, iteration, prefixes));
  }
}

static void walk_region(struct weight_walk *walk, const struct region *region, const char *const *prefixes) {
  walk->visit(walk, region, NULL, prefixes);
  for (int i = 0; i < region->nodes.count; i++) {
    const struct node *node = region->nodes.items[i];
    if (node->call != NULL) walk_call(walk, node, prefixes);
    walk->visit(walk, region, node, prefixes);
  }
}

void weight_walk_from(struct weight_walk *walk, const struct region *entry) {
  const char *root[] = {""};
  walk_region(walk, entry, root);
}

void weight_walk_entries(struct weight_walk *walk) {
  const struct region *backward = graph_backward_of(walk->program->graph, walk->program->graph->entry);
  weight_walk_from(walk, walk->program->graph->entry);
  if (walk->program->entry.second_region != NULL) weight_walk_from(walk, walk->program->entry.second_region);
  if (backward != NULL) weight_walk_from(walk, backward);
}
