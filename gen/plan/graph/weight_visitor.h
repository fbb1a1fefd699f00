/* All calls that a program's entries make, with the names that the parameters have in each. */
#ifndef ACCEL_PLAN_GRAPH_WEIGHT_VISITOR_H
#define ACCEL_PLAN_GRAPH_WEIGHT_VISITOR_H

#include "gen/program/program.h"

/* visit is called for each call of a region: before its first node with after == NULL, then after each node. prefixes:
 * the paths of the scopes that the call gives the region. A loop's backward goes from the last iteration to the first.
 */
struct weight_visitor {
  struct program *program;
  struct diagnostics *diags;
  bool ok;
  void (*visit)(struct weight_visitor *visitor, const struct region *region, const struct node *after,
                const char *const *prefixes);
  void *context; /* the visitor's own */
};

/* From one region that has no scopes from outside but the root. */
void weight_visit_from(struct weight_visitor *visitor, const struct region *entry);

/* From the entry, from its copy for evaluation, and from its backward, which may run forward regions of its own. */
void weight_visit_entries(struct weight_visitor *visitor);

/* Whether a region, or one that it calls, has a parameter below its scope `formal` that `counts`; NULL: each does. Of a
 * backward region it is asked of its forward. */
bool weight_scope_is_used(const struct region *region, int formal,
                          bool (*counts)(const void *context, const struct parameter *parameter), const void *context);

/* The name of what is `path` below the scope `prefix`. */
const char *weight_path(struct arena *arena, const char *prefix, const char *path);

/* The paths of the scopes that a call gives its callee in one iteration, from those of the calling region's. */
const char *const *weight_scopes(struct arena *arena, const struct call *call, int iteration,
                                 const char *const *prefixes);

#endif
