/* What was meant by a key or a value that the schema does not know. */
#include <ctype.h>
#include <string.h>

#include "gen/spec/check.h"
#include "gen/spec/names.h"
#include "gen/spec/schema.h"

/* ---- Who has a key ---- */

static void add_owner(struct arena *arena, struct schema_owners *owners, const char *path) {
  owners->paths = arena_grow(arena, owners->paths, owners->count, &owners->capacity, sizeof *owners->paths);
  owners->paths[owners->count++] = path;
}

static void find_owners(struct arena *arena, const json_t *root, const json_t *schema, const char *path,
                        const char *key, struct schema_owners *owners) {
  const json_t *items = schema_keyword(root, schema, "items");
  const json_t *holder = items != NULL ? items : schema;
  const char *name;
  json_t *inner;
  json_object_foreach((json_t *)schema_keyword(root, holder, "properties"), name, inner) {
    const char *deeper = *path != '\0' ? arena_printf(arena, "%s.%s", path, name) : arena_string(arena, name);
    if (strcmp(name, key) == 0) add_owner(arena, owners, path);
    find_owners(arena, root, inner, deeper, key, owners);
  }
}

struct schema_owners schema_owners_of(struct arena *arena, const json_t *root, const char *key) {
  struct schema_owners owners = {0};
  find_owners(arena, root, root, "", key, &owners);
  return owners;
}

bool schema_is_within(const char *path, const char *group) {
  size_t length = strlen(group);
  return length == 0 || (strncmp(path, group, length) == 0 && (path[length] == '\0' || path[length] == '.'));
}

/* Whether another of the owners has this one within it. */
static bool is_inner(const struct schema_owners *owners, const char *path) {
  for (int i = 0; i < owners->count; i++) {
    const char *outer = owners->paths[i];
    if (outer != path && outer[0] != '\0' && schema_is_within(path, outer)) return true;
  }
  return false;
}

/* Those in which a key was meant that is in `group`: above and below it if there are any, else the outermost. */
static struct schema_owners owners_from(struct check *c, const char *group, const char *key) {
  struct schema_owners all = schema_owners_of(c->arena, c->root, key), near = {0}, outer = {0};
  for (int i = 0; i < all.count; i++) {
    const char *path = all.paths[i];
    bool above = path[0] != '\0' && schema_is_within(group, path);
    if (group[0] != '\0' && (above || schema_is_within(path, group))) add_owner(c->arena, &near, path);
    if (!is_inner(&all, path)) add_owner(c->arena, &outer, path);
  }
  return near.count > 0 ? near : outer;
}

/* The key of `properties` that a word is nearest to; NULL for none. */
static const char *nearest_key(struct check *c, const json_t *properties, const char *word) {
  const char **keys = arena_alloc(c->arena, (json_object_size(properties) + 1) * sizeof *keys), *key;
  int count = 0;
  json_t *value;
  json_object_foreach((json_t *)properties, key, value) keys[count++] = arena_string(c->arena, key);
  return nearest_word(word, keys, count);
}

/* What other trainers call so; nothing where the document is no job. */
static const struct names *names_in(struct check *c) {
  if (c->names == NULL) {
    c->names = arena_alloc(c->arena, sizeof *c->names);
    *c->names = json_object_get(c->root, "noun") == NULL ? names_of(c->arena, NULL) : (struct names){0};
  }
  return c->names;
}

/* What an unknown key is to other trainers: a name without a class, else the members and classes; no value. */
static struct names names_of_key(struct check *c, const char *key) {
  struct names all = names_find(c->arena, names_in(c), key), keys = {0}, plain = {0};
  for (int i = 0; i < all.count; i++) {
    if (all.items[i]->is_value) continue;
    ARENA_PUSH(c->arena, keys, all.items[i]);
    if (all.items[i]->of == NULL) ARENA_PUSH(c->arena, plain, all.items[i]);
  }
  return plain.count > 0 ? plain : keys;
}

/* ---- Unknown keys ---- */

static void help_owners(struct check *c, const char *key, const struct schema_owners *owners) {
  struct text list = text_in(c->arena);
  for (int i = 0; i < owners->count; i++)
    text_printf(&list, "%s%s",
                i == 0                  ? ""
                : i + 1 < owners->count ? ", "
                                        : " and ",
                check_group_words(c, owners->paths[i]));
  diag_help(c->diags, "'%s' is a key of %s", key, text_string(&list));
}

static void help_keys(struct check *c, const char *group, const json_t *properties) {
  struct text list = text_in(c->arena);
  const char *key;
  json_t *value;
  json_object_foreach((json_t *)properties, key, value) text_printf(&list, "%s%s", list.length > 0 ? ", " : "", key);
  diag_help(c->diags, "the keys of %s are %s", check_group_words(c, group), text_string(&list));
}

/* What they are, each sentence once; with their classes where there are several sentences. */
static void help_names(struct check *c, const char *key, const struct names *names) {
  enum { MOST = 3 };
  const char *said[MOST], *of[MOST];
  int count = 0;
  for (int i = 0; i < names->count && count < MOST; i++) {
    const char *sentence = name_sentence(c->arena, c->root, names->items[i]);
    bool again = false;
    for (int j = 0; j < count; j++) again = again || strcmp(said[j], sentence) == 0;
    if (again) continue;
    of[count] = name_full(c->arena, names->items[i]);
    said[count++] = sentence;
  }
  for (int i = 0; i < count; i++) diag_help(c->diags, "'%s' %s", count == 1 ? key : of[i], said[i]);
}

void check_unknown(struct check *c, const struct subject *group, const json_t *properties,
                   const struct spec_entry *entry) {
  if (c->diags == NULL) return;
  struct spec_node name = {.kind = SPEC_STRING, .text = entry->key, .length = strlen(entry->key)};
  const char *shown = spec_describe(c->arena, &name), *in = check_group_words(c, group->path);
  const char *near = nearest_key(c, properties, entry->key);
  const struct names names = names_of_key(c, entry->key);
  struct schema_owners owners = owners_from(c, group->path, entry->key);
  if (names.count == 0 && near != NULL && owners.count == 0) {
    check_report(c, entry->key_where, "unknown key %s in %s; did you mean '%s'?", shown, in, near);
    return;
  }
  check_report(c, entry->key_where, "unknown key %s in %s", shown, in);
  if (owners.count > 0)
    help_owners(c, entry->key, &owners);
  else if (names.count > 0)
    help_names(c, entry->key, &names);
  else if (strcmp(entry->key, "<<") == 0)
    diag_help(c->diags, "YAML 1.2 has no merge keys; an alias can be a whole group");
  else
    help_keys(c, group->path, properties);
}

/* ---- Missing keys ---- */

struct missing {
  struct check *c;
  const char *group, *key; /* the group's path, and the key in it that is missing */
  const char *path;        /* of both */
};

/* Whether an unknown key in a group was meant to be the missing one. */
static bool is_meant(const struct missing *missing, const char *group, const json_t *properties, const char *key) {
  struct schema_owners owners = owners_from(missing->c, group, key);
  for (int i = 0; i < owners.count; i++) {
    const char *owner = owners.paths[i], *dot = owner[0] != '\0' ? "." : "";
    if (schema_is_within(arena_printf(missing->c->arena, "%s%s%s", owner, dot, key), missing->path)) return true;
  }
  if (owners.count > 0) return false;
  const struct names names = names_of_key(missing->c, key);
  for (int i = 0; i < names.count; i++)
    for (int j = 0; j < names.items[i]->at_count; j++)
      if (schema_is_within(names.items[i]->at[j], missing->path)) return true;
  if (names.count > 0 || strcmp(group, missing->group) != 0) return false;
  const char *near = nearest_key(missing->c, properties, key);
  return near != NULL && strcmp(near, missing->key) == 0;
}

static bool finds_meant(const struct missing *missing, const struct spec_node *node, const json_t *schema,
                        const char *path) {
  const json_t *root = missing->c->root, *properties = schema_keyword(root, schema, "properties");
  if (node->kind != SPEC_MAP || properties == NULL) return false;
  bool closed = json_is_false(schema_keyword(root, schema, "additionalProperties"));
  for (int i = 0; i < node->count; i++) {
    const struct spec_entry *entry = &node->entries[i];
    const json_t *inner = json_object_get(properties, entry->key);
    const char *dot = path[0] != '\0' ? "." : "";
    if (inner == NULL && closed && is_meant(missing, path, properties, entry->key)) return true;
    if (inner != NULL &&
        finds_meant(missing, entry->value, inner, arena_printf(missing->c->arena, "%s%s%s", path, dot, entry->key)))
      return true;
  }
  return false;
}

bool check_is_meant(struct check *c, const struct subject *group, const char *key) {
  const char *dot = group->path[0] != '\0' ? "." : "";
  struct missing missing = {c, group->path, key, arena_printf(c->arena, "%s%s%s", group->path, dot, key)};
  return c->document != NULL && finds_meant(&missing, c->document, c->root, "");
}

/* ---- Values ---- */

static const char *lower_case(struct arena *arena, const char *text, size_t length) {
  char *lower = arena_alloc(arena, length + 1);
  for (size_t i = 0; i < length; i++) lower[i] = (char)tolower((unsigned char)text[i]);
  lower[length] = '\0';
  return lower;
}

/* What a value is: to other trainers, or in an earlier version of the document. */
static const char *sentence_of_value(struct check *c, const json_t *schema, const struct subject *s) {
  const struct name *name = names_value(c->arena, names_in(c), s->path, s->node->text);
  if (name != NULL) return name_sentence(c->arena, c->root, name);
  return json_string_value(json_object_get(json_object_get(schema, "former"), s->node->text));
}

void check_meant_choice(struct check *c, const json_t *schema, const struct subject *s) {
  const struct spec_node *node = s->node;
  if (c->diags == NULL || node->text == NULL || node->kind == SPEC_MAP || node->kind == SPEC_LIST) return;
  const char *sentence = sentence_of_value(c, schema, s);
  if (sentence != NULL) {
    diag_help(c->diags, "'%s' %s", node->text, sentence);
    return;
  }
  const json_t *choices = json_object_get(schema, "enum"), *choice;
  const char **words = arena_alloc(c->arena, (json_array_size(choices) + 1) * sizeof *words);
  size_t i;
  int count = 0;
  json_array_foreach(choices, i, choice) if (json_is_string(choice)) words[count++] = json_string_value(choice);
  const char *near = node->kind == SPEC_STRING ? nearest_word(node->text, words, count) : NULL;
  if (near != NULL) diag_help(c->diags, "did you mean '%s'?", near);
}

void check_meant_member(struct check *c, const json_t *schema, const struct subject *s) {
  if (c->diags == NULL || s->node->kind != SPEC_STRING) return;
  const char *lower = lower_case(c->arena, s->node->text, s->node->length), *key;
  json_t *property;
  json_object_foreach((json_t *)schema_keyword(c->root, schema, "properties"), key, property) {
    const json_t *choices = schema_keyword(c->root, property, "enum"), *choice;
    size_t i;
    json_array_foreach(choices, i, choice) {
      if (!json_is_string(choice) || strcmp(json_string_value(choice), lower) != 0) continue;
      diag_help(c->diags, "did you mean %s: {%s: %s}?", s->name, key, lower);
      return;
    }
  }
}
