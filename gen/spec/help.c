/* Help: what the schema says about a key, for a person at a terminal. */
#include <string.h>

#include "gen/spec/check.h"
#include "gen/spec/help_names.h"
#include "gen/spec/job.h"
#include "gen/spec/names.h"
#include "gen/spec/schema.h"

struct helper {
  struct arena *arena;
  const json_t *root;
  struct text out;
};

static const json_t *keyword(const struct helper *h, const json_t *schema, const char *name) {
  return schema_keyword(h->root, schema, name);
}

static const char *sentence(const struct helper *h, const json_t *schema) {
  const char *text = json_string_value(keyword(h, schema, "description"));
  return text == NULL ? "" : text;
}

enum { COLUMNS = 80 };

static void add_sentence(struct helper *h, const json_t *schema, int indent) {
  text_printf(&h->out, "%*s", indent, "");
  text_fold(&h->out, sentence(h, schema), indent, indent, COLUMNS);
  text_puts(&h->out, "\n");
}

static void add_bound(struct helper *h, const json_t *schema, const char *name, const char *words) {
  const json_t *bound = keyword(h, schema, name);
  if (bound != NULL) text_printf(&h->out, " %s %s", words, schema_value_text(h->arena, bound));
}

/* How long a list is. */
static void add_items(struct helper *h, const json_t *schema) {
  const json_t *least = keyword(h, schema, "minItems"), *most = keyword(h, schema, "maxItems");
  if (least == NULL) return;
  bool exact = most != NULL && json_equal(least, most);
  text_printf(&h->out, " of %s%s", schema_value_text(h->arena, least), exact ? "" : " or more");
}

/* "an integer or text" */
static void add_types(struct helper *h, const json_t *types) {
  size_t i;
  const json_t *type;
  json_array_foreach(types, i, type) {
    text_puts(&h->out, i == 0 ? "" : i + 1 < json_array_size(types) ? ", " : " or ");
    text_puts(&h->out, schema_type_words(json_string_value(type)));
  }
}

/* ", 0.1 for muon": what the conditions of a group say of a key's default, each by the values of one key. */
static void add_conditional_defaults(struct helper *h, const json_t *group, const char *key) {
  size_t i;
  const json_t *part;
  json_array_foreach(keyword(h, group, "allOf"), i, part) {
    const json_t *then = json_object_get(json_object_get(part, "then"), "properties");
    const json_t *value = json_object_get(json_object_get(then, key), "default");
    const json_t *names = json_object_get(json_object_get(json_object_get(part, "if"), "properties"), "name");
    const json_t *list = json_object_get(names, "enum"), *one = json_object_get(names, "const");
    if (value == NULL) continue;
    text_printf(&h->out, ", %s for %s", schema_value_text(h->arena, value),
                list != NULL ? schema_list_text(h->arena, list) : schema_value_text(h->arena, one));
  }
}

/* "number greater than 0; default 0.001". Of `key` in `group`. */
static void add_words_of_type(struct helper *h, const json_t *group, const char *key, const json_t *schema,
                              bool required) {
  const json_t *type = keyword(h, schema, "type"), *choices = keyword(h, schema, "enum");
  const json_t *value = keyword(h, schema, "default");
  if (choices != NULL)
    text_printf(&h->out, "%s%s", json_array_size(choices) > 1 ? "one of " : "", schema_list_text(h->arena, choices));
  else if (json_is_string(type))
    text_puts(&h->out, schema_type_words(json_string_value(type)));
  else
    add_types(h, type);
  add_items(h, schema);
  add_bound(h, schema, "minimum", "from");
  add_bound(h, schema, "exclusiveMinimum", "greater than");
  add_bound(h, schema, "maximum", "up to");
  add_bound(h, schema, "exclusiveMaximum", "below");
  if (required) text_puts(&h->out, "; required");
  if (value != NULL) text_printf(&h->out, "; default %s", schema_value_text(h->arena, value));
  add_conditional_defaults(h, group, key);
}

/* A job needs a key of its own where no file that it extends has it. */
static bool is_needed_somewhere(const struct helper *h, const char *key) {
  size_t i, k;
  const json_t *part, *name;
  json_array_foreach(json_object_get(h->root, "allOf"), i, part)
      json_array_foreach(json_object_get(json_object_get(part, "else"), "required"), k,
                         name) if (strcmp(json_string_value(name), key) == 0) return true;
  return false;
}

static bool is_required(const struct helper *h, const json_t *group, const char *key) {
  size_t i;
  const json_t *name;
  json_array_foreach(keyword(h, group, "required"), i, name) if (strcmp(json_string_value(name), key) == 0) return true;
  return group == h->root && is_needed_somewhere(h, key);
}

/* "lr: a number greater than 0; default 0.001". `named`: how the line calls it. */
static void add_type(struct helper *h, const json_t *group, const char *key, const json_t *schema, const char *named,
                     int indent) {
  struct text line = h->out;
  h->out = text_in(h->arena);
  add_words_of_type(h, group, key, schema, is_required(h, group, key));
  const char *words = arena_printf(h->arena, "%s: %s", named, text_string(&h->out));
  h->out = line;
  text_printf(&h->out, "%*s", indent, "");
  text_fold(&h->out, words, indent, indent + 8, COLUMNS);
  text_puts(&h->out, "\n");
}

/* What has the keys: a group itself, of a list its items, of groups by name each of them. */
static const json_t *holder(const struct helper *h, const json_t *schema) {
  const json_t *items = keyword(h, schema, "items"), *named = keyword(h, schema, "additionalProperties");
  return items != NULL ? items : json_is_object(named) ? named : schema;
}

/* The keys of a group, deeper groups within. */
static void add_keys(struct helper *h, const json_t *group, int indent) {
  const char *key;
  json_t *schema;
  json_object_foreach((json_t *)keyword(h, group, "properties"), key, schema) {
    add_type(h, group, key, schema, key, indent);
    add_sentence(h, schema, indent + 4);
    add_keys(h, holder(h, schema), indent + 4);
  }
}

/* Up to the end of the first sentence; the rest is in the group's own help. */
static int first_sentence(const char *text) {
  const char *end = strstr(text, ". ");
  return end != NULL ? (int)(end - text) + 1 : (int)strlen(text);
}

static void add_groups(struct helper *h) {
  const char *key;
  json_t *schema;
  json_object_foreach(json_object_get(h->root, "properties"), key, schema) {
    const char *text = sentence(h, schema);
    const char *required = is_required(h, h->root, key) ? " Required." : "";
    text_printf(&h->out, "  %-14s", key);
    text_fold(&h->out, arena_printf(h->arena, "%.*s%s", first_sentence(text), text, required), 16, 16, COLUMNS);
    text_puts(&h->out, "\n");
  }
}

/* The schema of the group that holds a key. */
static const json_t *group_of(const struct helper *h, const char *key, const char **last) {
  const char *dot = strrchr(key, '.');
  *last = dot == NULL ? key : dot + 1;
  return schema_find(h->root, dot == NULL ? "" : arena_copy(h->arena, key, (size_t)(dot - key)));
}

static void add_key(struct helper *h, const char *key, const json_t *schema) {
  const char *last;
  const json_t *group = group_of(h, key, &last);
  bool keys = keyword(h, holder(h, schema), "properties") != NULL;
  add_type(h, group, last, schema, key, 0);
  add_sentence(h, schema, 2);
  text_puts(&h->out, keys ? "\n" : "");
  add_keys(h, holder(h, schema), 2);
}

/* A key without its group: all that have this name. */
static void add_owned(struct helper *h, const char *key) {
  struct schema_owners owners = schema_owners_of(h->arena, h->root, key);
  for (int i = 0; i < owners.count; i++) {
    const char *path = arena_printf(h->arena, "%s.%s", owners.paths[i], key);
    const json_t *schema = schema_find(h->root, path);
    if (schema == NULL) continue; /* of the groups in a list, whose own help has it */
    if (h->out.length > 0) text_puts(&h->out, "\n");
    add_key(h, path, schema);
  }
}

/* A name of another trainer with the key that it leads to, a value, or a key without its group. */
static void add_name(struct helper *h, const char *topic) {
  const char *key = help_add_names(&h->out, h->root, topic), *word = names_normal(h->arena, topic);
  if (key == NULL && strchr(word, '.') == NULL) add_owned(h, word);
  if (key == NULL) return;
  text_puts(&h->out, "\n");
  add_key(h, key, schema_find(h->root, key));
}

const char *job_help(struct arena *arena, const char *key) {
  json_t *root = schema_of_job();
  struct helper h = {arena, root, text_in(arena)};
  const json_t *schema = schema_find(root, key);
  if (strcmp(key, "elsewhere") == 0)
    help_add_all_names(&h.out, root);
  else if (schema == NULL)
    add_name(&h, key);
  else if (*key == '\0')
    add_groups(&h);
  else
    add_key(&h, key, schema);
  json_decref(root);
  return h.out.length == 0 ? NULL : text_string(&h.out);
}

struct job_names job_help_names(struct arena *arena) {
  struct names all = names_of(arena, NULL);
  struct job_names names = {0};
  for (int i = 0; i < all.count; i++)
    if (!all.items[i]->is_value) ARENA_PUSH(arena, names, name_full(arena, all.items[i]));
  return names;
}

static void add_names(struct helper *h, const json_t *schema, const char *path, struct job_names *names) {
  const char *key;
  json_t *inner;
  json_object_foreach((json_t *)keyword(h, schema, "properties"), key, inner) {
    const char *deeper = *path != '\0' ? arena_printf(h->arena, "%s.%s", path, key) : arena_string(h->arena, key);
    const char *both[] = {deeper, arena_string(h->arena, key)};
    for (int i = 0; i < (*path != '\0' ? 2 : 1); i++) {
      names->items = arena_grow(h->arena, names->items, names->count, &names->capacity, sizeof *names->items);
      names->items[names->count++] = both[i];
    }
    add_names(h, inner, deeper, names);
  }
}

struct job_names job_help_topics(struct arena *arena) {
  json_t *root = schema_of_job();
  struct helper h = {arena, root, text_in(arena)};
  struct job_names names = {0};
  add_names(&h, root, "", &names);
  json_decref(root);
  return names;
}

const char *job_sentence(struct arena *arena, const char *key) {
  json_t *root = schema_of_job();
  struct helper h = {arena, root, text_in(arena)};
  const json_t *schema = schema_find(root, key);
  const char *text = schema != NULL ? sentence(&h, schema) : "";
  text = text[0] != '\0' ? arena_string(arena, text) : NULL;
  json_decref(root);
  return text;
}
