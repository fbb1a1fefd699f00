#include <jansson.h>
#include <string.h>

#include "gen/provenance/json.h"
#include "gen/statements/statement.h"

static json_t *component(const char *type, const char *reference, const char *name) {
  json_t *object = json_object();
  json_put(object, "type", type);
  json_put(object, "bom-ref", reference);
  json_put(object, "name", name);
  return object;
}

static json_t *with_hash(json_t *object, const char *sha256) {
  json_t *list = json_array(), *hash = json_object();
  json_put(hash, "alg", "SHA-256");
  json_put(hash, "content", sha256);
  json_array_append_new(list, hash);
  if (sha256[0] != '\0')
    json_object_set_new(object, "hashes", list);
  else
    json_decref(list);
  return object;
}

/* A UUID of what is described, of version 8 (RFC 9562): the program's digest, so that one program has one SBOM. */
static json_t *serial_number(const char *sha256) {
  const char *h = sha256;
  return json_sprintf("urn:uuid:%.8s-%.4s-8%.3s-9%.3s-%.12s", h, h + 8, h + 12, h + 15, h + 18);
}

static json_t *metadata(const struct made *made) {
  json_t *object = json_object(), *tools = json_object(), *list = json_array();
  const char *type = made->compiler != NULL ? "application" : "file";
  json_object_set_new(object, "component", with_hash(component(type, "program", made->name), made->sha256));
  json_t *generator = with_hash(component("application", "accel-gen", "accel-gen"), made->manifest->generator.sha256);
  json_put(generator, "version", made->manifest->generator.version);
  json_array_append_new(list, generator);
  if (made->compiler != NULL) {
    json_t *compiler = component("application", "cc", "cc");
    json_put(compiler, "version", made->compiler);
    json_array_append_new(list, compiler);
  }
  json_object_set_new(tools, "components", list);
  json_object_set_new(object, "tools", tools);
  return object;
}

/* Libraries that programs are linked with, or load when they run, those whose runtime's name begins so;
 * share/accel-runtime*.pc.in name them. Which versions a machine has is not known where the C is written. */
static const struct library {
  const char *name, *runtime;
} libraries[] = {
    {"oneDNN", "accel-runtime"},
    {"jansson", "accel-runtime"},
    {"OpenMP runtime", "accel-runtime"},
    {"libm", "accel-runtime"},
    {"MPI", "accel-runtime-mpi"},
    {"CUDA runtime", "accel-runtime-cuda"},
    {"cuBLASLt", "accel-runtime-cuda"},
    {"cuDNN", "accel-runtime-cuda"},
    {"NCCL", "accel-runtime-cuda-ranks"},
    {"HIP runtime", "accel-runtime-hip"},
    {"hipBLASLt", "accel-runtime-hip"},
    {"PJRT plugin", "accel-runtime-xla"},
    {"SQLite", "sqlite3"},
};

/* The runtime is the first package; others are libraries that not all programs need. */
static bool is_linked(const struct manifest *manifest, const struct library *library) {
  if (strcmp(library->runtime, "sqlite3") == 0) return strstr(manifest->runtime, " sqlite3") != NULL;
  return strncmp(manifest->runtime, library->runtime, strlen(library->runtime)) == 0;
}

static json_t *components(struct arena *arena, const struct made *made, json_t *references) {
  const struct manifest *manifest = made->manifest;
  const char *first = arena_copy(arena, manifest->runtime, strcspn(manifest->runtime, " "));
  json_t *list = json_array(), *runtime = component("library", "accel-runtime", first);
  json_put(runtime, "version", manifest->generator.version);
  json_array_append_new(list, runtime);
  json_array_append_new(references, json_string("accel-runtime"));
  for (size_t i = 0; i < sizeof libraries / sizeof *libraries; i++) {
    const char *name = libraries[i].name;
    if (!is_linked(manifest, &libraries[i])) continue;
    json_array_append_new(list, component("library", name, name));
    json_array_append_new(references, json_string(name));
  }
  for (int i = 0; i < manifest->inputs.count; i++) {
    const struct manifest_file *file = &manifest->inputs.items[i];
    const char *reference = arena_printf(arena, "%s-%d", file->role, i);
    const char *type = strcmp(file->role, "model") == 0 ? "machine-learning-model" : "file";
    json_array_append_new(list, with_hash(component(type, reference, file->name), file->sha256));
    json_array_append_new(references, json_text(reference));
  }
  return list;
}

static json_t *dependencies(json_t *references) {
  json_t *list = json_array(), *program = json_object();
  json_put(program, "ref", "program");
  json_object_set_new(program, "dependsOn", references);
  json_array_append_new(list, program);
  return list;
}

const char *sbom_text(struct arena *arena, const struct made *made) {
  json_t *root = json_object(), *references = json_array();
  struct text out = text_in(arena);
  json_put(root, "bomFormat", "CycloneDX");
  json_put(root, "specVersion", "1.6");
  json_object_set_new(root, "serialNumber", serial_number(made->sha256));
  json_object_set_new(root, "version", json_integer(1));
  json_object_set_new(root, "metadata", metadata(made));
  json_object_set_new(root, "components", components(arena, made, references));
  json_object_set_new(root, "dependencies", dependencies(references));
  json_add_indented(&out, root);
  return text_string(&out);
}
