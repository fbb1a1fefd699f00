#include "gen/spec/refusals.h"

/* A list of nothing is as good as none. */
static bool is_there(const struct spec_node *node) {
  return node != NULL && node->kind != SPEC_NULL && !(node->kind == SPEC_LIST && node->count == 0);
}

static bool is_refused(const struct spec_node *node, const char *value) {
  if (!is_there(node)) return false;
  if (value != NULL && value[0] == '!') return !spec_is(node, value + 1);
  return value == NULL || spec_is(node, value);
}

void check_refusals(const struct spec_node *job, const struct refusal *list, size_t count, const char *conflict,
                    const struct spec_node *cause, const char *otherwise, struct diagnostics *diags) {
  for (size_t i = 0; i < count; i++) {
    const struct spec_node *node = spec_find(job, list[i].key);
    if (!is_refused(node, list[i].value)) continue;
    bool given = !node->is_default;
    diag_error(diags, given ? node->where : cause->where, "'%s' does not go with %s: %s", list[i].key, conflict,
               list[i].why);
    if (given) diag_note(diags, cause->where, "%s by this", conflict);
    diag_help(diags, "use %s, or %s", list[i].remedy, otherwise);
  }
}
