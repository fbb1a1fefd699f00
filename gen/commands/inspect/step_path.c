#include "gen/commands/inspect/step_path.h"

#include <string.h>

#include "gen/audit/audit.h"
#include "gen/commands/cli/runtime.h"

bool find_step_functions(const struct options *options, const char *file, const char *text, struct diff_input *input,
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
    if (function->body == NULL || !function->role->in_step_path || function->header == NULL) continue;
    if (strcmp(function->header, audit->tree->file) != 0) continue; /* of the runtime's headers, which all share */
    struct step_function step_function = {function->name, function->where.line - 1, function->body->last_line - 1};
    input->step_functions = arena_grow(arena, input->step_functions, input->n_step_functions,
                                       &input->step_functions_capacity, sizeof *input->step_functions);
    input->step_functions[input->n_step_functions++] = step_function;
  }
  return true;
}
