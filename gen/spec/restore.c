#include "gen/spec/restore.h"

#include <stdlib.h>
#include <string.h>

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

struct restorer {
  struct arena *arena;
  const json_t *root;
};

static struct spec_node *new_node(struct arena *arena, enum spec_kind kind) {
  struct spec_node *node = arena_alloc(arena, sizeof *node);
  node->kind = kind;
  node->text = "";
  return node;
}

static struct spec_entry *push(struct arena *arena, struct spec_node *node, const char *key) {
  struct spec_entry *entries = arena_alloc(arena, ((size_t)node->count + 1) * sizeof *entries);
  if (node->count > 0) memcpy(entries, node->entries, (size_t)node->count * sizeof *entries);
  entries[node->count] = (struct spec_entry){.key = key};
  node->entries = entries;
  return &entries[node->count++];
}

static struct spec_node *parse(struct arena *arena, const char *value) {
  struct diagnostics unread = diagnostics_in(arena);
  const struct spec_source *source = source_of(arena, "", value, strlen(value), true, &unread);
  return source != NULL ? yaml_parse(arena, source, &unread) : NULL;
}

/* The entry of `node` that the first word of a name leads to; names of a group that the schema does not list, as those
 * of model.config, are one word, whatever dots are in them. *rest is what follows. NULL: there is no such position. */
static struct spec_entry *descend(struct restorer *r, struct spec_node *node, const json_t **schema, const char *name,
                                  const char **rest) {
  size_t length = strcspn(name, ".");
  *rest = name + length + (name[length] == '.');
  if (node->kind == SPEC_LIST) {
    int index = atoi(name);
    *schema = schema_keyword(r->root, *schema, "items");
    if (index < 0 || index > node->count) return NULL;
    return index < node->count ? &node->entries[index] : push(r->arena, node, NULL);
  }
  if (node->kind != SPEC_MAP) return NULL;
  const json_t *inner = json_object_getn(schema_keyword(r->root, *schema, "properties"), name, length);
  if (inner == NULL) *rest = "";
  const char *key = inner != NULL ? arena_copy(r->arena, name, length) : name;
  *schema = inner;
  struct spec_entry *entry = spec_entry(node, key);
  return entry != NULL ? entry : push(r->arena, node, key);
}

/* Puts a value at a dotted name, with the groups and lists of groups on the way to it. */
static bool put(struct restorer *r, struct spec_node *node, const json_t *schema, const char *name,
                struct spec_node *value) {
  const char *rest;
  struct spec_entry *entry = value != NULL ? descend(r, node, &schema, name, &rest) : NULL;
  if (entry == NULL) return false;
  if (*rest == '\0') {
    entry->value = value;
    return true;
  }
  bool numbered = *rest >= '0' && *rest <= '9';
  if (entry->value == NULL) entry->value = new_node(r->arena, numbered ? SPEC_LIST : SPEC_MAP);
  return put(r, entry->value, schema, rest, value);
}

static struct job *restore(struct restorer *r, const struct stated_keys *stated) {
  struct arena *arena = r->arena;
  struct diagnostics unread = diagnostics_in(arena);
  struct spec_node *document = new_node(arena, SPEC_MAP);
  for (int i = 0; i < stated->count; i++)
    if (!put(r, document, r->root, stated->items[i].key, parse(arena, stated->items[i].value))) return NULL;
  if (!schema_validate(arena, r->root, document, &unread)) return NULL;
  struct job *job = arena_alloc(arena, sizeof *job);
  job->tree = spec_resolve(arena, r->root, document);
  job->digest = job_digest(arena, job);
  return stated->digest == NULL || strcmp(job->digest, stated->digest) == 0 ? job : NULL;
}

struct job *job_restore(struct arena *arena, const struct stated_keys *stated) {
  json_t *root = schema_of_job();
  struct restorer r = {arena, root};
  struct job *job = restore(&r, stated);
  json_decref(root);
  return job;
}
