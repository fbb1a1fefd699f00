#include "gen/spec/resolve.h"

#include <string.h>

#include "gen/spec/schema.h"

struct resolver {
  struct arena *arena;
  const json_t *root;
};

static struct spec_node *resolve(struct resolver *r, const json_t *schema, const struct spec_node *node,
                                 struct location where);

static struct spec_node *new_node(struct resolver *r, enum spec_kind kind, struct location where) {
  struct spec_node *node = arena_alloc(r->arena, sizeof *node);
  node->kind = kind;
  node->where = where;
  node->text = "";
  return node;
}

/* A default of the schema as a node. */
static struct spec_node *from_json(struct resolver *r, const json_t *value, struct location where) {
  struct spec_node *node = new_node(r, SPEC_NULL, where);
  if (json_is_string(value)) {
    node->kind = SPEC_STRING;
    node->text = arena_string(r->arena, json_string_value(value));
    node->length = strlen(node->text);
  } else if (json_is_boolean(value)) {
    node->kind = SPEC_BOOL;
    node->integer = json_is_true(value);
  } else if (json_is_number(value)) {
    node->kind = json_is_integer(value) ? SPEC_INT : SPEC_REAL;
    node->integer = json_integer_value(value);
    node->real = json_number_value(value);
  } else if (json_is_array(value)) {
    node->kind = SPEC_LIST;
    node->count = (int)json_array_size(value);
    node->entries = arena_alloc(r->arena, ((size_t)node->count + 1) * sizeof *node->entries);
    for (int i = 0; i < node->count; i++)
      node->entries[i].value = from_json(r, json_array_get(value, (size_t)i), where);
  }
  return node;
}

/* 2e3 where an integer is requested, 1 where a number is: one spelling for both, so that the digest is one too. */
static void normalise_number(struct spec_node *node, const char *type) {
  if (type != NULL && strcmp(type, "integer") == 0 && node->kind == SPEC_REAL) {
    node->kind = SPEC_INT;
    node->integer = (int64_t)node->real;
  } else if (type != NULL && strcmp(type, "number") == 0 && node->kind == SPEC_INT) {
    node->kind = SPEC_REAL;
  }
  if (node->kind == SPEC_REAL && node->real == 0) node->real = 0; /* no negative zero */
}

/* A value that the job does not write: its default, or a group of defaults; NULL when it stays away. */
static struct spec_node *absent(struct resolver *r, const json_t *schema, struct spec_node *value,
                                struct location where) {
  struct spec_node *node = value;
  if (node == NULL && schema_is_group(r->root, schema) && schema_allows_empty(r->arena, r->root, schema))
    node = new_node(r, SPEC_MAP, where);
  if (node == NULL) return NULL;
  node->is_default = true;
  return resolve(r, schema, node, where);
}

static struct spec_entry *push(struct spec_node *map, const char *key, struct spec_node *value, struct location where) {
  struct spec_entry *entry = &map->entries[map->count++];
  *entry = (struct spec_entry){key, where, value};
  return entry;
}

/* Whether a value that the job may write is what it is without being written, by the key's own default and by none that
 * depends on other keys. */
static bool is_at_default(struct resolver *r, const json_t *property, const json_t *given,
                          const struct spec_node *value) {
  if (given == NULL || given != schema_keyword(r->root, property, "default")) return false;
  struct text own = text_in(r->arena), its = text_in(r->arena);
  spec_write_value(&own, value);
  spec_write_value(&its, resolve(r, property, from_json(r, given, value->where), value->where));
  return strcmp(text_string(&own), text_string(&its)) == 0;
}

static struct spec_node *resolve_map(struct resolver *r, const json_t *schema, const struct spec_node *node,
                                     struct location where) {
  json_t *properties = (json_t *)schema_keyword(r->root, schema, "properties"), *property;
  const json_t *conditions = schema_target(r->root, schema);
  struct spec_node *result = new_node(r, SPEC_MAP, where);
  size_t capacity = (size_t)node->count + json_object_size(properties) + 1;
  const char *key;
  result->entries = arena_alloc(r->arena, capacity * sizeof *result->entries);
  json_object_foreach(properties, key, property) {
    const struct spec_entry *written = spec_entry(node, key);
    struct spec_node *value = NULL;
    struct location there = written != NULL ? written->key_where : where;
    const json_t *given = schema_default(r->arena, r->root, conditions, node, key);
    if (written != NULL) {
      value = resolve(r, property, written->value, there);
    } else {
      struct spec_node *own = given != NULL ? from_json(r, given, where) : NULL;
      if (!schema_forbids(r->arena, r->root, conditions, node, key, own)) value = absent(r, property, own, where);
    }
    if (value == NULL) continue;
    value->at_default = is_at_default(r, property, given, value);
    push(result, arena_string(r->arena, key), value, there);
  }
  for (int i = 0; i < node->count; i++) {
    const struct spec_entry *entry = &node->entries[i];
    if (json_object_get(properties, entry->key) == NULL)
      push(result, entry->key,
           resolve(r, json_object_get(schema, "additionalProperties"), entry->value, entry->key_where),
           entry->key_where);
  }
  return result;
}

/* `where`: the key's location, which a group takes for its own. */
static struct spec_node *resolve(struct resolver *r, const json_t *schema, const struct spec_node *node,
                                 struct location where) {
  if (node->kind == SPEC_MAP) return resolve_map(r, schema, node, where);
  struct spec_node *result = new_node(r, node->kind, node->where);
  *result = *node;
  normalise_number(result, json_string_value(schema_keyword(r->root, schema, "type")));
  if (node->kind != SPEC_LIST) return result;
  const json_t *items = schema_keyword(r->root, schema, "items");
  result->entries = arena_alloc(r->arena, ((size_t)node->count + 1) * sizeof *result->entries);
  for (int i = 0; i < node->count; i++)
    result->entries[i].value = resolve(r, items, node->entries[i].value, node->entries[i].value->where);
  return result;
}

struct spec_node *spec_resolve(struct arena *arena, const json_t *root, const struct spec_node *document) {
  struct resolver r = {arena, root};
  return resolve(&r, root, document, (struct location){.file = document->where.file});
}
