#include "gen/import/convert.h"

#include <string.h>

#include "gen/import/conversion.h"
#include "gen/spec/schema.h"

/* A key that is not here. */
static enum import_state end_unsupported(struct conversion *c) {
  const struct spec_node *value = c->row->value;
  if (node_is_off(value) || (node_is_number(value) && value->real == 0)) return end_as(c, IMPORT_NEEDLESS, "it is off");
  return end_as(c, IMPORT_REFUSED, row_sentence(c, c->name));
}

static bool is_setting(const char *lead) {
  return strchr(lead, '=') != NULL;
}

/* A key that is here, or refused so far, whose value is as it is. */
static enum import_state convert_plainly(struct conversion *c) {
  const struct name *name = c->name;
  const bool off = node_is_off(c->row->value);
  const json_t *schema = name->at_count == 1 ? schema_find(c->import->schema, name->at[0]) : NULL;
  if (name->at_count > 0 && is_setting(name->at[0])) {
    if (off) return end_as(c, IMPORT_NEEDLESS, "it is off");
    for (int i = 0; i < name->at_count && (i == 0 || c->row->state == IMPORT_TAKEN); i++) take_setting(c, name->at[i]);
    return c->row->state;
  }
  if (schema != NULL && !schema_is_group(c->import->schema, schema)) return take_value(c, name->at[0], schema);
  if (name->at_count == 1 && strncmp(name->at[0], "model.config.", 13) == 0)
    return take_key(c, name->at[0], c->row->value);
  if (off) return end_as(c, IMPORT_NEEDLESS, "it is off");
  const bool is_key = name->at_count > 0 && schema_find(c->import->schema, name->at[0]) != NULL;
  return end_as(c, is_key ? IMPORT_REFUSED : IMPORT_NEEDLESS, row_sentence(c, name));
}

/* What is said of this value of the key, as of a member "key.VALUE" of its class; NULL: nothing. */
static const struct name *name_of_value(const struct conversion *c) {
  const struct spec_node *value = c->row->value;
  if (value->kind != SPEC_STRING || value->text[0] == '\0') return NULL;
  return names_member(c->import->arena, &c->import->names, c->name->of,
                      arena_printf(c->import->arena, "%s.%s", c->name->word, value->text));
}

/* Whether the group says itself that it is off. */
static bool is_in_group_that_is_off(const struct conversion *c) {
  const bool is_group = c->row->value->kind == SPEC_MAP;
  const struct spec_node *enabled = is_group ? spec_find(c->row->value, "enabled") : sibling_of(c, "enabled");
  return enabled != NULL && enabled != c->row->value && node_is_off(enabled);
}

enum import_state convert(struct conversion *c) {
  const struct spec_node *value = c->row->value;
  const struct name *special = name_of_value(c);
  if (special != NULL) c->name = special;
  const struct name *name = c->name;
  if (is_in_group_that_is_off(c)) return end_as(c, IMPORT_NEEDLESS, "its group is not enabled");
  if (special != NULL && name->state == NAME_WORKS && (name->at_count == 0 || !is_setting(name->at[0])))
    return end_as(c, IMPORT_NEEDLESS, name->says);
  if (name->state == NAME_NEEDLESS) return end_as(c, IMPORT_NEEDLESS, name->says);
  if (value->kind == SPEC_STRING && node_is_word(value, "auto"))
    return end_as(c, IMPORT_OPEN,
                  name->at_count > 0 ? arena_printf(c->import->arena, "the script sets it; here %s", name->at[0])
                                     : name->says);
  if (value->kind == SPEC_NULL) return end_as(c, IMPORT_NEEDLESS, "nothing is given");
  if (name->as != NULL) return conversion_named(name->as)(c);
  if (name->state == NAME_ABSENT) return end_unsupported(c);
  return convert_plainly(c);
}
