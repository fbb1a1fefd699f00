#include "gen/spec/requires.h"

#include <string.h>

#include "gen/base/version.h"

bool requires_is_met(struct arena *arena, const struct spec_node *document, struct diagnostics *diags) {
  const struct spec_node *node = spec_find(document, "requires");
  if (node == NULL || node->kind != SPEC_STRING) return true; /* what is no text is refused by the schema */
  const char *wrong;
  bool met = version_is_in(arena, ACCEL_VERSION, node->text, &wrong);
  if (wrong != NULL) {
    diag_error(diags, node->where, "'requires' is not a range of versions: %s", wrong);
    diag_help(diags, "write conditions with commas, such as '>=0.2,<0.3'");
  } else if (!met) {
    diag_error(diags, node->where, "the job requires accel-gen %s; %s is installed", node->text, ACCEL_VERSION);
    diag_help(diags, "install a version that it takes, or change 'requires'; CHANGELOG.md says what versions changed");
  }
  return met;
}
