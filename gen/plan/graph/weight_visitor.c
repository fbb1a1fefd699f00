#include "gen/plan/graph/weight_visitor.h"

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

static void visit_region(struct weight_visitor *visitor, const struct region *region, const char *const *prefixes);

static void visit_call(struct weight_visitor *visitor, const struct node *node, const char *const *prefixes) {
  const struct call *call = node->call;
  for (int k = 0; k < call->count; k++) {
    int iteration = call->forward != NULL ? call->count - 1 - k : k;
    visit_region(visitor, call->callee, weight_scopes(visitor->program->arena, call, iteration, prefixes));
  }
}

static void visit_region(struct weight_visitor *visitor, const struct region *region, const char *const *prefixes) {
  visitor->visit(visitor, region, NULL, prefixes);
  for (int i = 0; i < region->nodes.count; i++) {
    const struct node *node = region->nodes.items[i];
    if (node->call != NULL) visit_call(visitor, node, prefixes);
    visitor->visit(visitor, region, node, prefixes);
  }
}

void weight_visit_from(struct weight_visitor *visitor, const struct region *entry) {
  const char *root[] = {""};
  visit_region(visitor, entry, root);
}

void weight_visit_entries(struct weight_visitor *visitor) {
  const struct region *backward = graph_backward_of(visitor->program->graph, visitor->program->graph->entry);
  weight_visit_from(visitor, visitor->program->graph->entry);
  if (visitor->program->entry.second_region != NULL) weight_visit_from(visitor, visitor->program->entry.second_region);
  if (backward != NULL) weight_visit_from(visitor, backward);
}
