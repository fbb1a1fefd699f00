#include "gen/audit/audit.h"

#include "gen/audit/calls.h"
#include "gen/audit/hidden.h"
#include "gen/audit/machine.h"
#include "gen/audit/walk.h"

struct audit *audit_run(struct arena *arena, const char *file, const struct audit_options *options,
                        struct diagnostics *diags) {
  struct tree *tree = tree_parse(arena, file, &options->parse, diags);
  if (tree == NULL) return NULL;
  struct audit *audit = arena_alloc(arena, sizeof *audit);
  audit->arena = arena;
  audit->tree = tree;
  calls_mark(audit, tree, options->root);
  calls_check(audit, tree);
  hidden_check(audit, tree);
  walk_check(audit, tree);
  if (options->object != NULL && !machine_check(audit, options->object, diags)) return NULL;
  return audit;
}
