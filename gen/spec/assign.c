#include "gen/spec/assign.h"

#include <stdlib.h>
#include <string.h>

#include "gen/spec/schema.h"

struct assignment {
  struct arena *arena;
  const json_t *root;
  struct spec_node *value;
  struct diagnostics *diags;
};

/* The entry of `word` in a group or a list that has space for one more; NULL: a list has no such position. */
static struct spec_entry *entry_of(struct spec_node *node, const char *word, struct location where) {
  bool is_list = node->kind == SPEC_LIST;
  int index = is_list ? atoi(word) : 0;
  struct spec_entry *entry = is_list ? NULL : spec_entry(node, word);
  if (entry != NULL) return entry;
  if (index < 0 || index > node->count) return NULL;
  if (is_list && index < node->count) return &node->entries[index];
  entry = &node->entries[node->count++];
  *entry = (struct spec_entry){.key = is_list ? NULL : word, .key_where = where};
  return entry;
}

/* Whether the key can continue below the entry's value. */
static bool can_hold(const struct assignment *a, const struct spec_entry *entry, const char *word) {
  const struct spec_node *existing = entry->value;
  if (existing->kind == SPEC_MAP || (existing->kind == SPEC_LIST && a->root != NULL)) return true;
  diag_error(a->diags, a->value->where, "'%s' is not a group of keys", word);
  diag_note(a->diags, existing->where, "it is %s here", spec_describe(a->arena, existing));
  return false;
}

static struct spec_node *assign(const struct assignment *a, const struct spec_node *node, const json_t *schema,
                                const char *key) {
  size_t length = strcspn(key, ".");
  if (node->kind == SPEC_LIST) {
    schema = schema_keyword(a->root, schema, "items");
  } else if (a->root != NULL) {
    const json_t *named = schema_keyword(a->root, schema, "additionalProperties");
    schema = json_object_getn(schema_keyword(a->root, schema, "properties"), key, length);
    if (schema == NULL && json_object_get(named, "properties") != NULL) schema = named; /* a group by its own name */
    if (schema == NULL) length = strlen(key);
  }
  const char *word = arena_copy(a->arena, key, length), *rest = key + length;
  struct spec_node *copy = spec_copy_map(a->arena, node, 1);
  struct spec_entry *entry = entry_of(copy, word, a->value->where);
  if (entry == NULL) return NULL;
  if (*rest == '\0') {
    entry->key_where = a->value->where;
    entry->value = a->value;
    return copy;
  }
  rest++;
  bool numbered = a->root != NULL && *rest >= '0' && *rest <= '9';
  struct spec_node nothing = {.kind = numbered ? SPEC_LIST : SPEC_MAP, .where = a->value->where, .text = ""};
  bool empty = entry->value == NULL || entry->value->kind == SPEC_NULL;
  if (!empty && !can_hold(a, entry, word)) return NULL;
  entry->value = assign(a, empty ? &nothing : entry->value, schema, rest);
  return entry->value == NULL ? NULL : copy;
}

struct spec_node *document_assign(struct arena *arena, const json_t *schema, const struct spec_node *document,
                                  const char *key, struct spec_node *value, struct diagnostics *diags) {
  struct assignment a = {arena, schema, value, diags};
  return assign(&a, document, schema, key);
}
