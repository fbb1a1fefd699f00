#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "gen/provenance/json.h"
#include "gen/provenance/manifest.h"

/* Members that are missing or of another type give empty values: what is written here is whole, and a file that
 * somebody changed shows in its digests. */

static const char *text_of(struct arena *arena, const json_t *object, const char *key) {
  const char *text = json_string_value(json_object_get(object, key));
  return text != NULL ? arena_string(arena, text) : "";
}

static struct manifest_list list_of(struct arena *arena, const json_t *object, const char *key) {
  struct manifest_list list = {0};
  size_t i;
  const json_t *item;
  json_array_foreach(json_object_get(object, key), i, item) {
    const char *text = json_string_value(item);
    if (text != NULL) manifest_add(arena, &list, arena_string(arena, text));
  }
  return list;
}

static struct manifest_file file_of(struct arena *arena, const json_t *object) {
  return (struct manifest_file){text_of(arena, object, "role"), text_of(arena, object, "name"),
                                text_of(arena, object, "sha256")};
}

static struct manifest_files files_of(struct arena *arena, const json_t *root, const char *key) {
  struct manifest_files files = {0};
  size_t i;
  const json_t *item;
  json_array_foreach(json_object_get(root, key), i, item) ARENA_PUSH(arena, files, file_of(arena, item));
  return files;
}

static void read_keys(struct arena *arena, const json_t *root, struct manifest *manifest) {
  const json_t *list = json_object_get(root, "keys"), *item;
  manifest->keys = arena_alloc(arena, (json_array_size(list) + 1) * sizeof *manifest->keys);
  size_t i;
  json_array_foreach(list, i, item) {
    struct manifest_key *key = &manifest->keys[manifest->n_keys++];
    key->key = text_of(arena, item, "key");
    key->value = text_of(arena, item, "value");
    key->where = text_of(arena, item, "where");
    key->written = json_is_true(json_object_get(item, "written"));
    key->tried = list_of(arena, item, "tried");
  }
}

static void read_line_keys(struct arena *arena, const json_t *names, const struct manifest *manifest,
                           struct manifest_line *line) {
  size_t i;
  const json_t *name;
  json_array_foreach(names, i, name) {
    for (int k = 0; k < manifest->n_keys && json_is_string(name); k++) {
      if (strcmp(manifest->keys[k].key, json_string_value(name)) != 0) continue;
      line->keys = arena_grow(arena, line->keys, line->n_keys, &line->keys_capacity, sizeof *line->keys);
      line->keys[line->n_keys++] = k;
    }
  }
}

static void read_lines(struct arena *arena, const json_t *root, struct manifest *manifest) {
  const json_t *list = json_object_get(root, "lines"), *item;
  manifest->lines = arena_alloc(arena, (json_array_size(list) + 1) * sizeof *manifest->lines);
  size_t i;
  json_array_foreach(list, i, item) {
    struct manifest_line *line = &manifest->lines[manifest->n_lines++];
    line->templates = list_of(arena, item, "template");
    line->callers = list_of(arena, item, "from");
    line->model = list_of(arena, item, "model");
    read_line_keys(arena, json_object_get(item, "keys"), manifest, line);
  }
}

static struct manifest *read_root(struct arena *arena, const json_t *root) {
  struct manifest *manifest = arena_alloc(arena, sizeof *manifest);
  const json_t *generator = json_object_get(root, "generator"), *invocation = json_object_get(root, "invocation");
  const json_t *job = json_object_get(root, "job");
  manifest->generator.version = text_of(arena, generator, "version");
  manifest->generator.sha256 = text_of(arena, generator, "sha256");
  manifest->kind = text_of(arena, invocation, "program");
  if (json_object_get(invocation, "templates") != NULL) manifest->templates = text_of(arena, invocation, "templates");
  manifest->set = list_of(arena, invocation, "set");
  manifest->output = file_of(arena, json_object_get(root, "output"));
  manifest->job.digest = text_of(arena, job, "sha256");
  manifest->job.resolved = text_of(arena, job, "resolved");
  manifest->job.model = text_of(arena, job, "model");
  struct text plan = text_in(arena);
  json_add(&plan, json_deep_copy(json_object_get(root, "plan")));
  manifest->plan = text_string(&plan);
  manifest->plan_text = text_of(arena, root, "summary");
  manifest->compile = text_of(arena, root, "compile");
  manifest->inputs = files_of(arena, root, "inputs");
  manifest->modules = files_of(arena, root, "modules");
  read_keys(arena, root, manifest);
  read_lines(arena, root, manifest);
  return manifest;
}

struct manifest *manifest_read(struct arena *arena, const char *file, struct diagnostics *diags) {
  FILE *stream = fopen(file, "rb");
  if (stream == NULL) {
    diag_error(diags, (struct location){.file = file}, "cannot read the manifest: %s", strerror(errno));
    return NULL;
  }
  json_error_t error;
  json_t *root = json_loadf(stream, JSON_REJECT_DUPLICATES, &error);
  fclose(stream);
  if (root == NULL) {
    diag_error(diags, (struct location){.file = file, .line = error.line, .column = error.column},
               "the manifest is not JSON: %s", error.text);
    return NULL;
  }
  const char *format = json_string_value(json_object_get(root, "format"));
  struct manifest *manifest = NULL;
  if (format != NULL && strcmp(format, "accel-gen-manifest-1") == 0) manifest = read_root(arena, root);
  if (manifest == NULL || manifest->inputs.count == 0 || manifest->output.name[0] == '\0') {
    manifest = NULL;
    diag_error(diags, (struct location){.file = file}, "this is not a manifest of accel-gen");
  }
  json_decref(root);
  return manifest;
}
