#include <jansson.h>
#include <stdlib.h>

#include "gen/provenance/json.h"
#include "gen/provenance/manifest.h"

static json_t *list_json(const struct manifest_list *list) {
  json_t *array = json_array();
  for (int i = 0; i < list->count; i++) json_array_append_new(array, json_text(list->items[i]));
  return array;
}

static json_t *file_json(const struct manifest_file *file) {
  json_t *object = json_object();
  json_put(object, "role", file->role);
  json_put(object, "name", file->name);
  json_put(object, "sha256", file->sha256);
  return object;
}

static json_t *modules_json(const struct manifest *manifest) {
  json_t *array = json_array();
  for (int i = 0; i < manifest->modules.count; i++)
    json_array_append_new(array, file_json(&manifest->modules.items[i]));
  return array;
}

static json_t *generator_json(const struct manifest *manifest) {
  json_t *object = json_object();
  json_put(object, "name", "accel-gen");
  json_put(object, "version", manifest->generator.version);
  json_put(object, "sha256", manifest->generator.sha256);
  return object;
}

static json_t *invocation_json(const struct manifest *manifest) {
  json_t *object = json_object();
  json_put(object, "program", manifest->kind);
  if (manifest->templates != NULL) json_put(object, "templates", manifest->templates);
  json_object_set_new(object, "set", list_json(&manifest->set));
  return object;
}

static json_t *job_json(const struct manifest *manifest) {
  json_t *object = json_object();
  json_put(object, "sha256", manifest->job.digest);
  json_put(object, "resolved", manifest->job.resolved);
  json_put(object, "model", manifest->job.model);
  return object;
}

static json_t *key_json(const struct manifest_key *key) {
  json_t *object = json_object();
  json_put(object, "key", key->key);
  json_put(object, "value", key->value);
  json_object_set_new(object, "written", json_boolean(key->written));
  if (key->where[0] != '\0') json_put(object, "where", key->where);
  json_object_set_new(object, "tried", list_json(&key->tried));
  return object;
}

static json_t *line_json(const struct manifest *manifest, int number) {
  const struct manifest_line *line = &manifest->lines[number];
  json_t *object = json_object(), *keys = json_array();
  for (int i = 0; i < line->n_keys; i++) json_array_append_new(keys, json_text(manifest->keys[line->keys[i]].key));
  json_object_set_new(object, "line", json_integer(number + 1));
  json_object_set_new(object, "template", list_json(&line->templates));
  if (line->callers.count > 0) json_object_set_new(object, "from", list_json(&line->callers));
  if (line->model.count > 0) json_object_set_new(object, "model", list_json(&line->model));
  json_object_set_new(object, "keys", keys);
  return object;
}

/* One member of the manifest; takes the value over. */
static void put_member(struct text *out, const char *name, json_t *value, bool last) {
  text_printf(out, "  \"%s\": ", name);
  json_add(out, value);
  text_puts(out, last ? "\n" : ",\n");
}

/* A list, an item a line. */
static void open_list(struct text *out, const char *name) {
  text_printf(out, "  \"%s\": [\n", name);
}

static void put_item(struct text *out, json_t *value, bool last) {
  text_puts(out, "    ");
  json_add(out, value);
  text_puts(out, last ? "\n" : ",\n");
}

const char *manifest_text(struct arena *arena, const struct manifest *manifest) {
  struct text out = text_in(arena);
  text_puts(&out, "{\n");
  put_member(&out, "format", json_string("accel-gen-manifest-1"), false);
  put_member(&out, "generator", generator_json(manifest), false);
  put_member(&out, "invocation", invocation_json(manifest), false);
  open_list(&out, "inputs");
  for (int i = 0; i < manifest->inputs.count; i++)
    put_item(&out, file_json(&manifest->inputs.items[i]), i + 1 == manifest->inputs.count);
  text_puts(&out, "  ],\n");
  put_member(&out, "output", file_json(&manifest->output), false);
  if (manifest->modules.count > 0) put_member(&out, "modules", modules_json(manifest), false);
  put_member(&out, "job", job_json(manifest), false);
  put_member(&out, "plan", json_loads(manifest->plan, 0, NULL), false);
  put_member(&out, "summary", json_text(manifest->plan_text), false);
  put_member(&out, "compile", json_text(manifest->compile), false);
  open_list(&out, "keys");
  for (int i = 0; i < manifest->n_keys; i++) put_item(&out, key_json(&manifest->keys[i]), i + 1 == manifest->n_keys);
  text_puts(&out, "  ],\n");
  open_list(&out, "lines");
  for (int i = 0; i < manifest->n_lines; i++) put_item(&out, line_json(manifest, i), i + 1 == manifest->n_lines);
  text_puts(&out, "  ]\n}\n");
  return text_string(&out);
}
