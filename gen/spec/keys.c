#include "gen/spec/keys.h"

#include <string.h>

#include "gen/spec/node.h"
#include "gen/spec/schema.h"

struct lister {
  struct arena *arena;
  const json_t *root;
  struct {
    struct job_key *items;
    int count, capacity;
  } keys;
};

static const char *value_text(struct arena *arena, const struct spec_node *node) {
  struct text out = text_in(arena);
  spec_write_value(&out, node);
  return text_string(&out);
}

static bool is_list_of_groups(const struct spec_node *node) {
  return node->kind == SPEC_LIST && node->count > 0 && node->entries[0].value->kind == SPEC_MAP;
}

/* Keys that the schema does not name, such as those of model.config, follow their group; a group among them that is
 * empty is a key. Groups in a list are distinguished by their indices: "optimizer.param_groups.0.match". */
static void list(struct lister *lister, const char *path, const struct spec_node *node, const json_t *schema,
                 bool may_change, bool is_named) {
  const json_t *said = schema != NULL ? schema_keyword(lister->root, schema, "mayChange") : NULL;
  if (said != NULL) may_change = json_is_true(said);
  bool groups = is_list_of_groups(node);
  if ((node->kind != SPEC_MAP && !groups) || (is_named && node->count == 0)) {
    struct job_key key = {path, value_text(lister->arena, node), node, node->at_default, may_change};
    ARENA_PUSH(lister->arena, lister->keys, key);
    return;
  }
  const json_t *inner = schema != NULL ? schema_keyword(lister->root, schema, groups ? "items" : "properties") : NULL;
  const json_t *named = schema != NULL ? schema_keyword(lister->root, schema, "additionalProperties") : NULL;
  for (int i = 0; i < node->count; i++) {
    const struct spec_entry *entry = &node->entries[i];
    const char *key = groups ? arena_printf(lister->arena, "%d", i) : entry->key;
    const json_t *property = groups ? inner : json_object_get(inner, entry->key);
    bool is_free = property == NULL && json_is_object(named);
    list(lister, arena_printf(lister->arena, "%s%s%s", path, *path != '\0' ? "." : "", key), entry->value,
         is_free ? named : property, may_change, is_free);
  }
}

struct job_key *job_keys(struct arena *arena, const struct job *job, int *count) {
  json_t *root = job->schema != NULL ? json_incref(job->schema) : schema_of_job();
  struct lister lister = {.arena = arena, .root = root};
  list(&lister, "", job->tree, root, false, false);
  json_decref(root);
  *count = lister.keys.count;
  return lister.keys.items;
}
