#include "gen/spec/override.h"

#include <string.h>

#include "gen/spec/assign.h"
#include "gen/spec/extends.h"
#include "gen/spec/source.h"
#include "gen/spec/yaml.h"

static bool is_key(const char *key) {
  size_t length = strlen(key);
  return length > 0 && key[0] != '.' && key[length - 1] != '.' && strstr(key, "..") == NULL;
}

/* The value's tree; nothing at all is YAML's null. NULL with an error. */
static struct spec_node *read_value(struct arena *arena, const char *value, struct location where,
                                    struct diagnostics *diags) {
  if (value[strspn(value, " \t\r\n")] == '\0') {
    struct spec_node *null = arena_alloc(arena, sizeof *null);
    null->text = "";
    null->where = where;
    return null;
  }
  struct spec_source *source = source_of(arena, where.file, value, strlen(value), true, diags);
  return source == NULL ? NULL : yaml_parse(arena, source, diags);
}

/* As a file that extends another takes a key away with null. */
static const struct spec_node *without_key(struct arena *arena, const struct spec_node *document, const char *key,
                                           struct spec_node *null, struct diagnostics *diags) {
  const struct spec_node empty = {.kind = SPEC_MAP, .where = null->where};
  const struct spec_node *above = document_assign(arena, NULL, &empty, key, null, diags);
  return above == NULL ? NULL : extends_merge(arena, document, above, diags);
}

const struct spec_node *override_apply(struct arena *arena, const struct spec_node *document,
                                       const struct job_override *override, struct diagnostics *diags) {
  bool bare = override->value == NULL;
  const char *text = arena_printf(arena, "--set %s%s%s", override->key, bare ? "" : "=", bare ? "" : override->value);
  struct location where = {.file = text};
  if (bare || !is_key(override->key)) {
    diag_error(diags, where, "expected a key and a value, such as optimizer.lr=1e-4");
    return document;
  }
  if (strncmp(override->key, "extends", strcspn(override->key, ".")) == 0 && strlen(override->key) >= 7) {
    diag_error(diags, where, "--set overrides what files say, and cannot change which ones a job extends");
    return document;
  }
  if (document->kind != SPEC_MAP) return document; /* validation says so */
  struct spec_node *value = read_value(arena, override->value, where, diags);
  if (value == NULL) return document;
  const struct spec_node *result = value->kind == SPEC_NULL && value->text[0] != '\0'
                                       ? without_key(arena, document, override->key, value, diags)
                                       : document_assign(arena, NULL, document, override->key, value, diags);
  return result == NULL ? document : result;
}
