#include "gen/spec/schema.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gen/base/embedded.h"
#include "gen/spec/check.h"
#include "gen/spec/pattern.h"

static json_t *embedded(const char *name, const char *text) {
  json_error_t error;
  json_t *root = json_loads(text, JSON_REJECT_DUPLICATES, &error);
  if (root != NULL) return root;
  fprintf(stderr, "accel-gen: %s:%d: %s\n", name, error.line, error.text); /* a build that no test has seen */
  exit(1);
}

json_t *schema_of_job(void) {
  return embedded("job.schema.json", accel_job_schema);
}

json_t *schema_of_tuning(void) {
  return embedded("tuning.schema.json", accel_tuning_schema);
}

json_t *schema_of_measured(void) {
  return embedded("measured.schema.json", accel_measured_schema);
}

const json_t *schema_target(const json_t *root, const json_t *schema) {
  const char *reference = json_string_value(json_object_get(schema, "$ref"));
  if (reference == NULL || strncmp(reference, "#/$defs/", 8) != 0) return schema;
  return json_object_get(json_object_get(root, "$defs"), reference + 8);
}

const json_t *schema_keyword(const json_t *root, const json_t *schema, const char *keyword) {
  const json_t *own = json_object_get(schema, keyword);
  return own != NULL ? own : json_object_get(schema_target(root, schema), keyword);
}

const json_t *schema_find(const json_t *root, const char *key) {
  const json_t *schema = root;
  while (schema != NULL && *key != '\0') {
    size_t length = strcspn(key, ".");
    schema = json_object_getn(schema_keyword(root, schema, "properties"), key, length);
    key += length;
    if (*key == '.') key++;
  }
  return schema;
}

static bool check(struct check *c, const json_t *schema, const struct subject *s);

static bool check_pattern(struct check *c, const json_t *schema, const struct subject *s) {
  const char *pattern = json_string_value(json_object_get(schema, "pattern"));
  const char *message = json_string_value(json_object_get(schema, "patternErrorMessage"));
  if (pattern == NULL || pattern_matches(pattern, s->node->text, s->node->length)) return true;
  if (message == NULL) message = arena_printf(c->arena, "must match %s", pattern);
  if (s->node->text == s->name)
    check_report(c, s->node->where, "'%s' %s", s->name, message); /* a key itself */
  else
    check_report(c, s->node->where, "'%s' %s, not %s", s->name, message, spec_describe(c->arena, s->node));
  return false;
}

static bool check_text(struct check *c, const json_t *schema, const struct subject *s) {
  if (s->node->length < (size_t)json_integer_value(json_object_get(schema, "minLength"))) {
    check_report(c, s->node->where, "'%s' must not be empty", s->name);
    return false;
  }
  return check_pattern(c, schema, s);
}

static bool check_number(struct check *c, const json_t *schema, const struct subject *s) {
  static const struct {
    const char *keyword, *words;
  } bounds[] = {{"minimum", "at least"},
                {"exclusiveMinimum", "greater than"},
                {"maximum", "at most"},
                {"exclusiveMaximum", "less than"}};
  double value = s->node->real;
  for (int i = 0; i < 4; i++) {
    const json_t *bound = json_object_get(schema, bounds[i].keyword);
    double limit = json_number_value(bound);
    bool holds = i == 0 ? value >= limit : i == 1 ? value > limit : i == 2 ? value <= limit : value < limit;
    if (bound == NULL || holds) continue;
    check_report(c, s->node->where, "'%s' must be %s %s, not %s", s->name, bounds[i].words,
                 schema_value_text(c->arena, bound), spec_describe(c->arena, s->node));
    return false;
  }
  return true;
}

static bool check_list(struct check *c, const json_t *schema, const struct subject *s) {
  const json_t *least = json_object_get(schema, "minItems"), *most = json_object_get(schema, "maxItems");
  bool good = true;
  if ((least != NULL && s->node->count < json_integer_value(least)) ||
      (most != NULL && s->node->count > json_integer_value(most))) {
    check_report(c, s->node->where, "'%s' must be a list of %lld, not of %d", s->name,
                 (long long)json_integer_value(least != NULL ? least : most), s->node->count);
    good = false;
  }
  for (int i = 0; i < s->node->count; i++) {
    struct subject item = {.node = s->node->entries[i].value,
                           .name = arena_printf(c->arena, "%s[%d]", s->name, i),
                           .path = arena_printf(c->arena, "%s[%d]", s->path, i)};
    item.key_where = item.node->where;
    good = check(c, json_object_get(schema, "items"), &item) && good;
  }
  return good;
}

static bool check_required(struct check *c, const json_t *schema, const struct subject *s) {
  size_t i;
  const json_t *key;
  bool good = true;
  json_array_foreach(json_object_get(schema, "required"), i, key) {
    if (spec_entry(s->node, json_string_value(key)) != NULL) continue;
    check_missing(c, s, schema, json_string_value(key));
    good = false;
  }
  return good;
}

static struct subject child(struct check *c, const struct subject *s, const struct spec_entry *entry) {
  const char *path = s->path[0] == '\0' ? entry->key : arena_printf(c->arena, "%s.%s", s->path, entry->key);
  return (struct subject){entry->value, entry->key, path, entry->key_where};
}

static bool check_name(struct check *c, const json_t *names, const struct spec_entry *entry) {
  struct spec_node name = {.kind = SPEC_STRING, .where = entry->key_where, .text = entry->key};
  name.length = strlen(entry->key);
  struct subject s = {&name, entry->key, entry->key, entry->key_where};
  return check(c, names, &s);
}

/* How many keys a group has. */
static bool check_size(struct check *c, const json_t *schema, const struct subject *s) {
  const json_t *least = json_object_get(schema, "minProperties"), *most = json_object_get(schema, "maxProperties");
  if (least != NULL && s->node->count < json_integer_value(least)) {
    check_report(c, s->node->where, "'%s' must have %lld %s or more, not %d", s->name,
                 (long long)json_integer_value(least), json_integer_value(least) == 1 ? "key" : "keys", s->node->count);
    return false;
  }
  if (most != NULL && s->node->count > json_integer_value(most)) {
    check_report(c, s->node->where, "'%s' must have at most %lld keys, not %d", s->name,
                 (long long)json_integer_value(most), s->node->count);
    return false;
  }
  return true;
}

static bool check_map(struct check *c, const json_t *schema, const struct subject *s) {
  const json_t *properties = json_object_get(schema, "properties"), *names = json_object_get(schema, "propertyNames");
  const json_t *others = json_object_get(schema, "additionalProperties");
  bool good = check_required(c, schema, s) && check_size(c, schema, s);
  for (int i = 0; i < s->node->count; i++) {
    const struct spec_entry *entry = &s->node->entries[i];
    const json_t *property = json_object_get(properties, entry->key);
    struct subject value = child(c, s, entry);
    if (names != NULL) good = check_name(c, names, entry) && good;
    if (property != NULL)
      good = check(c, property, &value) && good;
    else if (json_is_object(others))
      good = check(c, others, &value) && good;
    else if (json_is_false(others)) {
      check_unknown(c, s, properties, entry);
      good = false;
    }
  }
  return good;
}

/* Whether the value satisfies a schema, without a message. */
static bool holds(const struct check *c, const json_t *schema, const struct subject *s) {
  struct check silent = *c;
  silent.diags = NULL;
  return check(&silent, schema, s);
}

/* A schema that a condition has brought in: its messages say which one. */
static bool check_because(struct check *c, const json_t *schema, const struct subject *s, struct cause cause) {
  struct cause outer = c->cause;
  c->cause = cause;
  bool good = check(c, schema, s);
  c->cause = outer;
  return good;
}

static bool check_conditions(struct check *c, const json_t *schema, const struct subject *s) {
  const json_t *condition = json_object_get(schema, "if"), *part;
  json_t *dependents = json_object_get(schema, "dependentSchemas");
  const char *key;
  size_t i;
  bool good = true;
  if (condition != NULL) {
    part = json_object_get(schema, holds(c, condition, s) ? "then" : "else");
    const struct cause cause = part != NULL ? check_cause(c, condition, s) : (struct cause){0};
    if (part != NULL && !cause.unknown) good = check_because(c, part, s, cause);
  }
  json_object_foreach(dependents, key, part) {
    const struct spec_entry *entry = spec_entry(s->node, key);
    if (entry != NULL) good = check_because(c, part, s, check_key_cause(c, s, entry)) && good;
  }
  json_array_foreach(json_object_get(schema, "allOf"), i, part) good = check(c, part, s) && good;
  return good;
}

static bool check_kind(struct check *c, const json_t *schema, const struct subject *s) {
  switch (s->node->kind) {
  case SPEC_INT:
  case SPEC_REAL:
    return check_number(c, schema, s);
  case SPEC_STRING:
    return check_text(c, schema, s);
  case SPEC_LIST:
    return check_list(c, schema, s);
  case SPEC_MAP:
    return check_map(c, schema, s);
  case SPEC_NULL:
  case SPEC_BOOL:
    break;
  }
  return true;
}

/* A value of the wrong type or not among the allowed ones gets that message only. */
static bool check(struct check *c, const json_t *schema, const struct subject *s) {
  if (schema == NULL || json_is_true(schema) || s->node->broken) return true;
  if (json_is_false(schema)) {
    check_forbidden(c, s);
    return false;
  }
  const json_t *target = schema_target(c->root, schema);
  if (target != schema && !check(c, target, s)) return false;
  if (!check_type(c, schema, s) || !check_choice(c, schema, s)) return false;
  bool good = check_kind(c, schema, s);
  return check_conditions(c, schema, s) && good;
}

bool schema_validate(struct arena *arena, const json_t *root, const struct spec_node *document,
                     struct diagnostics *diags) {
  struct check c = {.arena = arena, .diags = diags, .root = root, .document = document};
  struct subject job = {document, "job", "", document->where};
  return check(&c, root, &job);
}

bool schema_is_group(const json_t *root, const json_t *schema) {
  const json_t *types = schema_keyword(root, schema, "type"), *type;
  size_t i;
  if (json_is_string(types)) return strcmp(json_string_value(types), "object") == 0;
  bool may_be = false;
  json_array_foreach(types, i, type) may_be |= strcmp(json_string_value(type), "object") == 0;
  return may_be && schema_keyword(root, schema, "default") == NULL;
}

bool schema_allows_empty(struct arena *arena, const json_t *root, const json_t *schema) {
  struct check c = {.arena = arena, .root = root};
  const struct spec_node group = {.kind = SPEC_MAP, .text = ""};
  const struct subject s = {&group, "", "", {0}};
  return check(&c, schema, &s);
}

bool schema_forbids(struct arena *arena, const json_t *root, const json_t *schema, const struct spec_node *group,
                    const char *key, struct spec_node *value) {
  struct check c = {.arena = arena, .root = root};
  struct spec_node *with = spec_copy_map(arena, group, 1);
  struct spec_node *probe = value != NULL ? value : arena_alloc(arena, sizeof *probe);
  if (value == NULL) probe->text = "";
  /* An empty group, for the conditions on what a group holds. */
  if (schema_is_group(root, json_object_get(json_object_get(schema, "properties"), key))) probe->kind = SPEC_MAP;
  with->entries[with->count++] = (struct spec_entry){.key = key, .value = probe};
  struct subject before = {group, "", "", {0}}, after = {with, "", "", {0}};
  return check_conditions(&c, schema, &before) && !check_conditions(&c, schema, &after);
}

const json_t *schema_default(struct arena *arena, const json_t *root, const json_t *schema,
                             const struct spec_node *group, const char *key) {
  struct check c = {.arena = arena, .root = root};
  struct subject s = {group, "", "", {0}};
  const json_t *found = schema_keyword(root, json_object_get(json_object_get(schema, "properties"), key), "default");
  const json_t *part;
  size_t i;
  json_array_foreach(json_object_get(schema, "allOf"), i, part) {
    const json_t *condition = json_object_get(part, "if");
    const json_t *then = json_object_get(part, condition == NULL || holds(&c, condition, &s) ? "then" : "else");
    const json_t *own = json_object_get(json_object_get(json_object_get(then, "properties"), key), "default");
    if (own != NULL) found = own;
  }
  return found;
}
