#include "gen/commands/hot.h"

#include "gen/audit/audit.h"
#include "gen/commands/runtime.h"

bool find_hot(const struct options *options, const char *file, const char *text, struct side *side,
              struct diagnostics *diags) {
  struct arena *arena = options->arena;
  struct words flags = words_in(arena);
  reading_flags(options, &flags);
  struct audit_options audit_options = {
      .text = text, .flags = (const char *const *)flags.items, .n_flags = flags.count, .root = options->root};
  const struct audit *audit = audit_calls(arena, file, &audit_options, diags);
  if (audit == NULL) return false;
  for (int i = 0; i < audit->tree->n_functions; i++) {
    const struct function *function = audit->tree->functions[i];
    if (function->body == NULL || !function->role->is_hot || function->header == NULL) continue;
    struct hot_function hot = {function->name, function->where.line - 1, function->body->last_line - 1};
    side->hot = arena_grow(arena, side->hot, side->n_hot, &side->hot_capacity, sizeof *side->hot);
    side->hot[side->n_hot++] = hot;
  }
  return true;
}
