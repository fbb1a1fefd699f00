/* Records of a function: what their members are, where that was written as a whole or member by member. */
#include <string.h>

#include "gen/audit/interp/interp.h"

static const struct field *add(struct interp *interp, const struct field *next, int64_t offset, int64_t size,
                               struct value value) {
  struct field *field = arena_alloc(interp->memory, sizeof *field);
  *field = (struct field){.next = next, .offset = offset, .size = size, .value = value};
  return field;
}

const struct field *interp_set_field(struct interp *interp, const struct field *fields, int64_t offset, int64_t size,
                                     struct value value) {
  const struct field *remaining = NULL;
  for (; fields != NULL; fields = fields->next)
    if (fields->offset + fields->size <= offset || offset + size <= fields->offset)
      remaining = add(interp, remaining, fields->offset, fields->size, fields->value);
  return add(interp, remaining, offset, size, value);
}

const struct value *interp_field(const struct field *fields, int64_t offset, int64_t size) {
  for (; fields != NULL; fields = fields->next)
    if (fields->offset == offset && fields->size == size) return &fields->value;
  return NULL;
}

static bool is_followed(const struct type *type) {
  return type->kind == TYPE_INTEGER || type->kind == TYPE_POINTER;
}

/* The value of one part of a list, and the member that it is for; false: for something else. */
static bool read_part(struct interp *interp, const struct type *record, struct syntax *part, int *member,
                      struct value *value) {
  struct syntax *last = part;
  if (part->kind == SYNTAX_DESIGNATED) {
    if (part->n_parts != 2 || part->parts[0]->kind != SYNTAX_DESIGNATOR) {
      *value = interp_evaluate(interp, part);
      return false;
    }
    *member = type_member(record, part->parts[0]->text);
    last = part->parts[1];
  }
  *value = interp_evaluate(interp, last);
  return *member >= 0 && *member < record->n_members;
}

/* Members of a member. */
static const struct field *add_inner(struct interp *interp, const struct field *fields, int64_t offset,
                                     struct value inner) {
  const struct field *from = inner.kind == VALUE_NUMBER ? inner.fields : NULL;
  for (; from != NULL; from = from->next)
    if (from->offset != FIELD_ALL) fields = add(interp, fields, offset + from->offset, from->size, from->value);
  return fields;
}

struct value interp_pointers(struct interp *interp, struct syntax *list) {
  const struct type *element = list->type->element;
  struct value whole = value_number(0);
  bool in_order = true;
  for (int i = 0; i < list->n_parts; i++) {
    struct value value = interp_evaluate(interp, list->parts[i]);
    whole.origin |= value.origin;
    in_order = in_order && list->parts[i]->kind != SYNTAX_DESIGNATED;
    if (in_order)
      whole.fields = add(interp, whole.fields, i * element->size, element->size, value_convert(value, element));
  }
  if (!in_order) whole.fields = NULL;
  return whole;
}

struct value interp_record(struct interp *interp, struct syntax *list) {
  const struct type *record = list->type;
  struct value whole = value_number(0);
  bool *named = arena_alloc(interp->memory, (size_t)record->n_members + 1);
  int next = 0;
  bool all = !record->is_union;
  for (int i = 0; i < list->n_parts; i++) {
    struct value value;
    bool known = read_part(interp, record, list->parts[i], &next, &value);
    whole.origin |= value.origin;
    all = all && known;
    if (!all) continue;
    const struct member *member = &record->members[next];
    named[next++] = true;
    if (is_followed(member->type) && member->offset >= 0)
      whole.fields = add(interp, whole.fields, member->offset, member->type->size, value_convert(value, member->type));
    else if (member->offset >= 0)
      whole.fields = add_inner(interp, whole.fields, member->offset, value);
  }
  for (int i = 0; all && i < record->n_members; i++)
    if (!named[i] && is_followed(record->members[i].type) && record->members[i].offset >= 0)
      whole.fields =
          add(interp, whole.fields, record->members[i].offset, record->members[i].type->size, value_integer(0, 0));
  if (!all) whole.fields = NULL;
  return whole;
}

struct content interp_integers(struct value record) {
  const struct value *all = record.kind == VALUE_NUMBER ? interp_field(record.fields, FIELD_ALL, 0) : NULL;
  return all == NULL ? (struct content){0} : (struct content){.known = true, .low = all->low, .high = all->high};
}

void interp_set_integers(struct interp *interp, struct value *record, struct content content) {
  if (content.known) record->fields = add(interp, NULL, FIELD_ALL, 0, value_integer(content.low, content.high));
}
