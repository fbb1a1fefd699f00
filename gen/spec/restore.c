#include "gen/spec/restore.h"

#include <string.h>

#include "gen/spec/assign.h"
#include "gen/spec/node.h"
#include "gen/spec/resolve.h"
#include "gen/spec/schema.h"
#include "gen/spec/yaml.h"

struct stated_keys stated_in_checkpoint(struct arena *arena, const json_t *recorded) {
  json_t *keys = json_object_get(recorded, "keys"), *entry;
  struct stated_keys stated = {.digest = json_string_value(json_object_get(recorded, "digest")),
                               .generator = json_string_value(json_object_get(recorded, "generator"))};
  const char *name;
  json_object_foreach(keys != NULL ? keys : (json_t *)recorded, name, entry) {
    const char *value = json_string_value(json_object_get(entry, "value"));
    if (value == NULL || strcmp(name, MODEL_KEY) == 0) continue;
    ARENA_PUSH(arena, stated, ((struct job_override){arena_string(arena, name), arena_string(arena, value)}));
  }
  if (stated.digest != NULL) stated.digest = arena_string(arena, stated.digest);
  if (stated.generator != NULL) stated.generator = arena_string(arena, stated.generator);
  return stated;
}

static struct spec_node *parse(struct arena *arena, const char *value) {
  struct diagnostics unread = diagnostics_in(arena);
  const struct spec_source *source = source_of(arena, "", value, strlen(value), true, &unread);
  return source != NULL ? yaml_parse(arena, source, &unread) : NULL;
}

static struct job *restore(struct arena *arena, const json_t *root, const struct stated_keys *stated) {
  struct diagnostics unread = diagnostics_in(arena);
  struct spec_node *document = &(struct spec_node){.kind = SPEC_MAP, .text = ""};
  for (int i = 0; i < stated->count && document != NULL; i++) {
    struct spec_node *value = parse(arena, stated->items[i].value);
    document = value != NULL ? document_assign(arena, root, document, stated->items[i].key, value, &unread) : NULL;
  }
  if (document == NULL || !schema_validate(arena, root, document, &unread)) return NULL;
  struct job *job = arena_alloc(arena, sizeof *job);
  job->tree = spec_resolve(arena, root, document);
  job->digest = job_digest(arena, job);
  return stated->digest == NULL || strcmp(job->digest, stated->digest) == 0 ? job : NULL;
}

struct job *job_restore(struct arena *arena, const struct stated_keys *stated) {
  json_t *root = schema_of_job();
  struct job *job = restore(arena, root, stated);
  json_decref(root);
  return job;
}
