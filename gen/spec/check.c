#include "gen/spec/check.h"

#include <math.h>
#include <string.h>

#include "gen/spec/scalar.h"
#include "gen/spec/schema.h"

const char *schema_type_words(const char *type) {
  static const char *const words[][2] = {
      {"object", "a group of keys"}, {"array", "a list"},    {"string", "text"},
      {"integer", "an integer"},     {"number", "a number"}, {"boolean", "true or false"},
  };
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    if (strcmp(words[i][0], type) == 0) return words[i][1];
  return type;
}

const char *schema_value_text(struct arena *arena, const json_t *value) {
  if (json_is_string(value)) return arena_string(arena, json_string_value(value));
  if (json_is_integer(value)) return arena_printf(arena, "%lld", (long long)json_integer_value(value));
  if (json_is_real(value)) return spec_number(arena, json_real_value(value), false);
  if (json_is_array(value)) return arena_printf(arena, "[%s]", schema_list_text(arena, value));
  return json_is_true(value) ? "true" : "false";
}

const char *schema_list_text(struct arena *arena, const json_t *values) {
  struct text out = text_in(arena);
  size_t i;
  const json_t *value;
  json_array_foreach(values, i, value) {
    text_puts(&out, i > 0 ? ", " : "");
    text_puts(&out, schema_value_text(arena, value));
  }
  return text_string(&out);
}

static const char *cause_text(const struct check *c) {
  const struct cause *cause = &c->cause;
  if (cause->value == NULL) return cause->path;
  return arena_printf(c->arena, "%s %s%s", cause->path, cause->value, cause->written ? "" : ", the default");
}

static void add_cause_note(struct check *c) {
  const struct cause *cause = &c->cause;
  if (cause->path == NULL || !cause->written) return;
  if (cause->value == NULL)
    diag_note(c->diags, cause->where, "'%s' is set here", cause->path);
  else
    diag_note(c->diags, cause->where, "'%s' is %s here", cause->path, cause->value);
}

void check_report(struct check *c, struct location where, const char *format, ...) {
  if (c->diags == NULL) return;
  va_list args;
  va_start(args, format);
  const char *message = arena_vprintf(c->arena, format, args);
  va_end(args);
  if (c->cause.path != NULL)
    diag_error(c->diags, where, "%s, with %s", message, cause_text(c));
  else
    diag_error(c->diags, where, "%s", message);
  add_cause_note(c);
}

/* What messages call the document: the schema's noun, or `job`. */
static const char *noun(const struct check *c, const char *job) {
  const char *own = json_string_value(json_object_get(c->root, "noun"));
  return own != NULL ? own : job;
}

const char *check_group_words(const struct check *c, const char *path) {
  return path[0] == '\0' ? noun(c, "job") : path;
}

static void help(struct check *c, const char *before, const char *text, const char *after) {
  if (c->diags != NULL && text != NULL) diag_help(c->diags, "%s%s%s", before, text, after);
}

/* The key, or, of a group that a condition asks for because of one key in it, that one: "devices.memory". */
static const char *innermost(const struct check *c, const json_t *schema, const char *key) {
  const json_t *inner = json_object_get(json_object_get(schema, "properties"), key);
  const json_t *required = json_object_get(inner, "required");
  if (c->cause.path == NULL || json_array_size(required) != 1) return key;
  const char *one = json_string_value(json_array_get(required, 0));
  return arena_printf(c->arena, "%s.%s", key, innermost(c, inner, one));
}

void check_missing(struct check *c, const struct subject *group, const json_t *schema, const char *key) {
  if (c->diags == NULL || check_is_meant(c, group, key)) return;
  key = innermost(c, schema, key);
  check_report(c, group->key_where, "missing key '%s' in %s", key, check_group_words(c, group->path));
  const char *path = group->path[0] == '\0' ? key : arena_printf(c->arena, "%s.%s", group->path, key);
  const char *sentence = json_string_value(schema_keyword(c->root, schema_find(c->root, path), "description"));
  if (sentence != NULL) diag_help(c->diags, "%s: %s", key, sentence);
}

void check_forbidden(struct check *c, const struct subject *s) {
  if (c->diags == NULL) return;
  diag_error(c->diags, s->key_where, "'%s' does not go with %s", s->name, cause_text(c));
  add_cause_note(c);
}

static bool is_type(const struct spec_node *node, const char *type) {
  bool number = node->kind == SPEC_INT || (node->kind == SPEC_REAL && isfinite(node->real));
  if (strcmp(type, "object") == 0) return node->kind == SPEC_MAP;
  if (strcmp(type, "array") == 0) return node->kind == SPEC_LIST;
  if (strcmp(type, "string") == 0) return node->kind == SPEC_STRING;
  if (strcmp(type, "boolean") == 0) return node->kind == SPEC_BOOL;
  if (strcmp(type, "number") == 0) return number;
  if (strcmp(type, "integer") == 0) return number && node->real == floor(node->real);
  return false;
}

/* The type, or the types with "or" between them; whether the value is of one. */
static bool match_types(struct check *c, const json_t *types, const struct spec_node *node, const char **words) {
  if (json_is_string(types)) {
    *words = schema_type_words(json_string_value(types));
    return is_type(node, json_string_value(types));
  }
  struct text out = text_in(c->arena);
  size_t i;
  const json_t *type;
  bool good = false;
  json_array_foreach(types, i, type) {
    text_printf(&out, "%s%s",
                i == 0                        ? ""
                : json_array_size(types) == 2 ? " or "
                                              : ", ",
                schema_type_words(json_string_value(type)));
    good = good || is_type(node, json_string_value(type));
  }
  *words = text_string(&out);
  return good;
}

/* What YAML 1.1 took for a boolean is a word in YAML 1.2. */
static const char *boolean_meant(const struct spec_node *node) {
  static const char *const words[][2] = {{"yes", "true"}, {"on", "true"}, {"no", "false"}, {"off", "false"}};
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    if (node->kind == SPEC_STRING && strcmp(node->text, words[i][0]) == 0) return words[i][1];
  return NULL;
}

/* A number or a truth in quotes is text: what it would be without them. */
static struct spec_node unquoted(const struct spec_node *node) {
  struct spec_node plain = *node;
  if (node->kind == SPEC_STRING && node->text[0] != '\0') scalar_resolve(&plain);
  return plain;
}

static void help_unquoted(struct check *c, const struct spec_node *node) {
  help(c, "quotes make it text; write it without them: ", node->text, "");
}

bool check_type(struct check *c, const json_t *schema, const struct subject *s) {
  const json_t *types = json_object_get(schema, "type");
  const char *words;
  if (json_object_get(schema, "enum") != NULL) return true; /* the choices say more than their type */
  if (types == NULL || match_types(c, types, s->node, &words)) return true;
  const char *name = s->path[0] == '\0' ? noun(c, "a job") : arena_printf(c->arena, "'%s'", s->name);
  check_report(c, s->node->where, "%s must be %s, not %s", name, words, spec_describe(c->arena, s->node));
  bool scalar = s->node->kind == SPEC_INT || s->node->kind == SPEC_REAL || s->node->kind == SPEC_BOOL;
  if (s->node->kind == SPEC_NULL && strcmp(words, "a group of keys") == 0)
    help(c, "a group without keys is ", "{}", "");
  if (strcmp(words, "a group of keys") == 0) check_meant_member(c, schema, s);
  if (strcmp(words, "true or false") == 0) help(c, "did you mean ", boolean_meant(s->node), "?");
  const struct spec_node plain = unquoted(s->node);
  if (plain.kind != s->node->kind && match_types(c, types, &plain, &words)) help_unquoted(c, s->node);
  if (strcmp(words, "text") == 0 && scalar) help(c, "write it in quotes: \"", s->node->text, "\"");
  return false;
}

static bool equals(const struct spec_node *node, const json_t *value) {
  if (json_is_string(value))
    return node->kind == SPEC_STRING && node->length == json_string_length(value) &&
           memcmp(node->text, json_string_value(value), node->length) == 0;
  if (json_is_number(value))
    return (node->kind == SPEC_INT || node->kind == SPEC_REAL) && node->real == json_number_value(value);
  if (json_is_boolean(value)) return node->kind == SPEC_BOOL && node->integer == json_is_true(value);
  return false;
}

static bool check_enum(struct check *c, const json_t *schema, const struct subject *s) {
  const json_t *choices = json_object_get(schema, "enum"), *choice;
  size_t i;
  const struct spec_node plain = unquoted(s->node);
  bool without = false;
  json_array_foreach(choices, i, choice) {
    if (equals(s->node, choice)) return true;
    without = without || (plain.kind != s->node->kind && equals(&plain, choice));
  }
  const char *words = schema_list_text(c->arena, choices);
  words = arena_printf(c->arena, json_array_size(choices) > 1 ? "one of %s" : "'%s'", words);
  check_report(c, s->node->where, "'%s' must be %s, not %s", s->name, words, spec_describe(c->arena, s->node));
  if (without)
    help_unquoted(c, s->node);
  else
    check_meant_choice(c, schema, s);
  return false;
}

bool check_choice(struct check *c, const json_t *schema, const struct subject *s) {
  const json_t *constant = json_object_get(schema, "const"), *choices = json_object_get(schema, "enum");
  if (choices != NULL && !check_enum(c, schema, s)) return false;
  if (constant == NULL || equals(s->node, constant)) return true;
  check_report(c, s->node->where, "'%s' must be %s, not %s", s->name, schema_value_text(c->arena, constant),
               spec_describe(c->arena, s->node));
  return false;
}

struct cause check_key_cause(const struct check *c, const struct subject *group, const struct spec_entry *entry) {
  const char *path = group->path[0] == '\0' ? entry->key : arena_printf(c->arena, "%s.%s", group->path, entry->key);
  return (struct cause){.path = path, .written = true, .where = entry->key_where};
}

/* The first comparison within the properties of a condition, else the first key that it requires. `node`: NULL where
 * the job has no such key.
 */
static struct cause find_comparison(const struct check *c, const json_t *condition, const struct spec_node *node,
                                    const char *path) {
  const char *key;
  json_t *property;
  json_object_foreach(json_object_get(condition, "properties"), key, property) {
    const struct spec_entry *entry = spec_entry(node, key);
    const struct spec_node *value = entry == NULL ? NULL : entry->value;
    const char *deeper = arena_printf(c->arena, "%s%s%s", path, path[0] == '\0' ? "" : ".", key);
    const json_t *constant = json_object_get(property, "const");
    if (constant == NULL && json_object_get(property, "enum") == NULL) {
      if (value != NULL && value->kind != SPEC_MAP) return (struct cause){.unknown = true};
      struct cause found = find_comparison(c, property, value, deeper);
      if (found.path != NULL || found.unknown) return found;
      continue;
    }
    if (value != NULL)
      return (struct cause){
          .path = deeper, .value = spec_describe(c->arena, value), .written = true, .where = value->where};
    const json_t *preset = schema_keyword(c->root, schema_find(c->root, deeper), "default");
    const char *quote = json_is_string(preset) ? "'" : "", *text = schema_value_text(c->arena, preset);
    return (struct cause){.path = deeper, .value = arena_printf(c->arena, "%s%s%s", quote, text, quote)};
  }
  const char *required = json_string_value(json_array_get(json_object_get(condition, "required"), 0));
  const struct spec_entry *entry = required != NULL ? spec_entry(node, required) : NULL;
  if (entry == NULL) return (struct cause){0};
  const char *there = arena_printf(c->arena, "%s%s%s", path, path[0] == '\0' ? "" : ".", required);
  return (struct cause){.path = there, .written = true, .where = entry->key_where};
}

struct cause check_cause(const struct check *c, const json_t *condition, const struct subject *group) {
  return find_comparison(c, condition, group->node, group->path);
}
