#include "gen/import/conversion.h"

#include <ctype.h>
#include <string.h>

#include "gen/spec/assign.h"
#include "gen/spec/scalar.h"
#include "gen/spec/schema.h"

/* ---- Rows ---- */

enum import_state end_as(struct conversion *c, enum import_state state, const char *says) {
  c->row->state = state;
  c->row->says = says;
  return state;
}

const char *row_sentence(const struct conversion *c, const struct name *name) {
  return name_sentence(c->import->arena, c->import->schema, name);
}

struct spec_node *node_of(const struct conversion *c, const char *text) {
  struct spec_node *node = arena_alloc(c->import->arena, sizeof *node);
  *node = (struct spec_node){.kind = SPEC_STRING,
                             .where = c->row->where,
                             .text = arena_string(c->import->arena, text),
                             .length = strlen(text)};
  scalar_resolve(node);
  return node;
}

struct spec_node *number_of(const struct conversion *c, double value) {
  return node_of(c, spec_number(c->import->arena, value, false));
}

static const char *written(struct arena *arena, const struct spec_node *node) {
  struct text out = text_in(arena);
  spec_write_value(&out, node);
  return text_string(&out);
}

enum import_state take_key(struct conversion *c, const char *key, const struct spec_node *value) {
  struct import *import = c->import;
  const struct spec_node *known = spec_find(import->job, key);
  struct spec_node *copy = arena_alloc(import->arena, sizeof *copy);
  *copy = *value;
  copy->where = c->row->where;
  if (known != NULL && strcmp(written(import->arena, known), written(import->arena, copy)) != 0)
    return end_as(c, IMPORT_REFUSED,
                  arena_printf(import->arena, "%s is %s by %s:%d", key, spec_describe(import->arena, known),
                               known->where.file, known->where.line));
  struct diagnostics unread = diagnostics_in(import->arena);
  struct spec_node *job = document_assign(import->arena, import->schema, import->job, key, copy, &unread);
  if (job == NULL)
    return end_as(c, IMPORT_REFUSED, arena_printf(import->arena, "%s is a single value by another key", key));
  import->job = job;
  const char **keys = arena_alloc(import->arena, ((size_t)c->row->n_keys + 1) * sizeof *keys);
  if (c->row->n_keys > 0) memcpy(keys, c->row->keys, (size_t)c->row->n_keys * sizeof *keys);
  keys[c->row->n_keys++] = key;
  c->row->keys = keys;
  return end_as(c, IMPORT_TAKEN, c->name->says);
}

enum import_state take_setting(struct conversion *c, const char *setting) {
  const char *equals = strchr(setting, '=');
  return take_key(c, arena_copy(c->import->arena, setting, (size_t)(equals - setting)), node_of(c, equals + 1));
}

/* ---- Values ---- */

bool node_is_word(const struct spec_node *node, const char *word) {
  if (node->text == NULL || node->kind == SPEC_MAP || node->kind == SPEC_LIST) return false;
  const char *a = node->text;
  while (*a != '\0' && tolower((unsigned char)*a) == *word) a++, word++;
  return *a == '\0' && *word == '\0';
}

bool node_is_off(const struct spec_node *node) {
  static const char *const words[] = {"no", "none", "null", "false", ""};
  if (node->kind == SPEC_NULL || ((node->kind == SPEC_MAP || node->kind == SPEC_LIST) && node->count == 0)) return true;
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    if (node_is_word(node, words[i])) return true;
  return false;
}

bool node_is_number(const struct spec_node *node) {
  return node->kind == SPEC_INT || node->kind == SPEC_REAL;
}

bool needs_number(struct conversion *c) {
  if (node_is_number(c->row->value)) return true;
  end_as(c, IMPORT_REFUSED,
         arena_printf(c->import->arena, "it must be a number, not %s", spec_describe(c->import->arena, c->row->value)));
  return false;
}

static bool is_choice(const json_t *schema, const char *word) {
  const json_t *choice;
  size_t i;
  json_array_foreach(json_object_get(schema, "enum"), i, choice) {
    if (json_is_string(choice) && strcmp(json_string_value(choice), word) == 0) return true;
  }
  return false;
}

/* What a value sets in addition to its key. */
static void take_also(struct conversion *c, const struct name *name) {
  const char *says = c->row->says;
  for (int i = 0; i < name->also_count && c->row->state == IMPORT_TAKEN; i++) take_setting(c, name->also[i]);
  if (c->row->state == IMPORT_TAKEN) c->row->says = says;
}

/* A word that is none of the key's own, in letters of the key's case or as another trainer's. */
static enum import_state take_word(struct conversion *c, const char *key, const json_t *schema, const char *word) {
  struct arena *arena = c->import->arena;
  const struct name *value = names_value(arena, &c->import->names, key, word);
  const char *normal = names_normal(arena, word);
  if (value == NULL) return take_key(c, key, is_choice(schema, normal) ? node_of(c, normal) : c->row->value);
  if (value->state == NAME_ABSENT)
    return end_as(c, IMPORT_REFUSED, arena_printf(arena, "'%s' %s", word, row_sentence(c, value)));
  const char *lead = value->at[0];
  if (strchr(lead, '.') != NULL)
    return end_as(c, IMPORT_REFUSED, arena_printf(arena, "'%s' %s", word, row_sentence(c, value)));
  take_key(c, key, node_of(c, lead));
  if (c->row->state == IMPORT_TAKEN) c->row->says = value->says;
  take_also(c, value);
  return c->row->state;
}

enum import_state take_value(struct conversion *c, const char *key, const json_t *schema) {
  const struct spec_node *value = c->row->value;
  const bool scalar = value->kind != SPEC_MAP && value->kind != SPEC_LIST && value->text != NULL;
  const bool chosen = scalar && schema_keyword(c->import->schema, schema, "enum") != NULL;
  if (chosen && !is_choice(schema, value->text))
    take_word(c, key, schema, value->text);
  else
    take_key(c, key, value);
  if (chosen && c->row->state == IMPORT_TAKEN && c->row->says == c->name->says) c->row->says = NULL;
  take_also(c, c->name);
  return c->row->state;
}

const struct spec_node *sibling_of(const struct conversion *c, const char *key) {
  const struct spec_entry *entry = spec_entry((struct spec_node *)c->group, key);
  return entry != NULL && entry->value->kind != SPEC_NULL ? entry->value : NULL;
}
