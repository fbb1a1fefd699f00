#include "gen/statements/statement.h"

#include <jansson.h>
#include <string.h>

#include "gen/provenance/json.h"

const char *statements_missing(struct arena *arena) {
  (void)arena;
  return NULL;
}

/* A ResourceDescriptor: what it is called, and its digest. */
static json_t *resource(const char *name, const char *sha256) {
  json_t *object = json_object(), *digest = json_object();
  json_put(object, "name", name);
  json_put(digest, "sha256", sha256);
  json_object_set_new(object, "digest", digest);
  return object;
}

static json_t *annotated(json_t *object, const char *key, const char *value) {
  json_t *annotations = json_object();
  json_put(annotations, key, value);
  json_object_set_new(object, "annotations", annotations);
  return object;
}

static json_t *subjects(const struct made *made) {
  json_t *list = json_array();
  json_array_append_new(list, resource(made->name, made->sha256));
  return list;
}

/* What the user said: another job, or another word on the command line, is another build. */
static json_t *external_parameters(const struct manifest *manifest) {
  json_t *object = json_object(), *set = json_array();
  for (int i = 0; i < manifest->set.count; i++) json_array_append_new(set, json_text(manifest->set.items[i]));
  json_put(object, "job", manifest->inputs.items[0].name);
  json_put(object, "program", manifest->kind);
  json_object_set_new(object, "set", set);
  if (manifest->templates != NULL) json_put(object, "templates", manifest->templates);
  return object;
}

static json_t *internal_parameters(const struct made *made) {
  json_t *object = json_object();
  json_put(object, "resolvedJob", made->manifest->job.resolved);
  json_put(object, "compile", made->command != NULL ? made->command : made->manifest->compile);
  return object;
}

static json_t *dependencies(const struct manifest *manifest) {
  json_t *list = json_array();
  for (int i = 0; i < manifest->inputs.count; i++) {
    const struct manifest_file *file = &manifest->inputs.items[i];
    json_array_append_new(list, annotated(resource(file->name, file->sha256), "role", file->role));
  }
  return list;
}

static json_t *definition(const struct made *made) {
  json_t *object = json_object();
  json_put(object, "buildType",
           made->compiler != NULL ? "pkg:generic/accel-gen#build-v1" : "pkg:generic/accel-gen#generate-v1");
  json_object_set_new(object, "externalParameters", external_parameters(made->manifest));
  json_object_set_new(object, "internalParameters", internal_parameters(made));
  json_object_set_new(object, "resolvedDependencies", dependencies(made->manifest));
  return object;
}

static json_t *builder(const struct made *made) {
  const struct manifest *manifest = made->manifest;
  json_t *object = json_object(), *version = json_object(), *parts = json_array();
  json_object_set_new(object, "id", json_sprintf("pkg:generic/accel-gen@%s", manifest->generator.version));
  json_put(version, "accel-gen", manifest->generator.version);
  if (made->compiler != NULL) json_put(version, "cc", made->compiler);
  json_object_set_new(object, "version", version);
  json_array_append_new(parts, resource("accel-gen", manifest->generator.sha256));
  json_object_set_new(object, "builderDependencies", parts);
  return object;
}

/* A program that was compiled has its C for a byproduct. */
static json_t *details(const struct made *made) {
  const struct manifest_file *output = &made->manifest->output;
  json_t *object = json_object();
  json_object_set_new(object, "builder", builder(made));
  if (strcmp(made->name, output->name) == 0) return object;
  json_t *list = json_array();
  json_array_append_new(list, resource(output->name, output->sha256));
  json_object_set_new(object, "byproducts", list);
  return object;
}

const char *statement_text(struct arena *arena, const struct made *made) {
  json_t *root = json_object(), *predicate = json_object();
  struct text out = text_in(arena);
  json_put(root, "_type", "https://in-toto.io/Statement/v1");
  json_object_set_new(root, "subject", subjects(made));
  json_put(root, "predicateType", "https://slsa.dev/provenance/v1");
  json_object_set_new(predicate, "buildDefinition", definition(made));
  json_object_set_new(predicate, "runDetails", details(made));
  json_object_set_new(root, "predicate", predicate);
  json_add_indented(&out, root);
  return text_string(&out);
}
