#include "gen/import/read.h"

#include <string.h>

#include "gen/base/path.h"
#include "gen/spec/source.h"
#include "gen/spec/yaml.h"

/* A YAML document. What a job must not have, such as a key that is there twice, is a warning here. */
static const struct spec_node *read_yaml(struct arena *arena, const struct spec_source *source,
                                         struct diagnostics *diags) {
  struct diagnostics found = diagnostics_in(arena);
  const struct spec_node *read = yaml_parse(arena, source, &found);
  for (int i = 0; i < found.count; i++) {
    const struct diagnostic *one = &found.items[i];
    const bool is_error = one->severity == SEVERITY_ERROR;
    if (is_error && read != NULL)
      diag_warning(diags, one->where, "%s; the last one counts", one->message);
    else if (is_error)
      diag_error(diags, one->where, "%s", one->message);
    else if (one->severity == SEVERITY_HELP)
      diag_help(diags, "%s", one->message);
    else
      diag_note(diags, one->where, "%s", one->message);
  }
  return read;
}

const struct spec_node *import_read(struct arena *arena, const char *path, struct diagnostics *diags) {
  size_t length = 0;
  const char *text = source_read(arena, path, (struct location){0}, &length, diags);
  if (text == NULL) return NULL;
  const char *file = arena_string(arena, path);
  diag_add_source(diags, file, text);
  const struct spec_source *source = source_of(arena, file, text, length, false, diags);
  if (source == NULL) return NULL;
  const struct spec_node *read =
      has_ending(path, ".py") ? python_read(arena, file, source->text, diags) : read_yaml(arena, source, diags);
  if (read == NULL || (read->kind == SPEC_MAP && read->count > 0)) return read;
  diag_error(diags, (struct location){.file = file}, "has no keys");
  diag_help(diags, "give a configuration in YAML or JSON, or assignments in a file that ends with .py");
  return NULL;
}
