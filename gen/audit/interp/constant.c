#include "gen/audit/interp/constant.h"

#include <string.h>

#include "gen/audit/interp/value.h"

struct subobject {
  const struct type *type;
  int64_t offset;
};

struct reader {
  struct arena *arena;
  struct constants constants;
};

static void read_value(struct reader *reader, struct subobject subobject, const struct syntax *node);

/* The part of a record or an array at `position`. */
static bool find_part(struct subobject whole, int64_t position, struct subobject *part) {
  if (whole.type->kind == TYPE_RECORD) {
    int limit = whole.type->is_union ? 1 : whole.type->n_members;
    if (position >= limit) return false;
    const struct member *member = &whole.type->members[position];
    *part = (struct subobject){member->type, whole.offset + member->offset};
    return true;
  }
  if (whole.type->kind != TYPE_ARRAY && whole.type->kind != TYPE_VECTOR) return false;
  *part = (struct subobject){whole.type->element, whole.offset + position * whole.type->element->size};
  return true;
}

/* Where `name` is, directly or through unnamed members; *position is its index among the outermost members. */
static bool find_named(struct subobject whole, const char *name, struct subobject *part, int64_t *position) {
  for (int i = 0; i < whole.type->n_members; i++) {
    const struct member *member = &whole.type->members[i];
    struct subobject inner = {member->type, whole.offset + member->offset};
    int64_t unused;
    bool found = strcmp(member->name, name) == 0;
    if (found) *part = inner;
    if (!found && member->name[0] == '\0' && member->type->kind == TYPE_RECORD)
      found = find_named(inner, name, part, &unused);
    if (found) {
      *position = i;
      return true;
    }
  }
  return false;
}

/* Follows the designators of an item; the value is its last part. */
static bool follow(struct subobject whole, const struct syntax *item, struct subobject *part, int64_t *position) {
  *part = whole;
  for (int i = 0; i + 1 < item->n_parts; i++) {
    int64_t at = 0;
    const struct syntax *step = item->parts[i];
    bool found = step->kind == SYNTAX_DESIGNATOR ? find_named(*part, step->text, part, &at)
                                                 : constant_integer(step, &at) && find_part(*part, at, part);
    if (!found) return false;
    if (i == 0) *position = at;
  }
  return true;
}

static void read_list(struct reader *reader, struct subobject whole, const struct syntax *list) {
  int64_t position = 0;
  for (int i = 0; i < list->n_parts; i++) {
    const struct syntax *item = list->parts[i];
    struct subobject part;
    bool designated = item->kind == SYNTAX_DESIGNATED;
    bool found = designated ? follow(whole, item, &part, &position) : find_part(whole, position, &part);
    if (!found) return;
    read_value(reader, part, designated ? item->parts[item->n_parts - 1] : item);
    position++;
  }
}

static void read_value(struct reader *reader, struct subobject subobject, const struct syntax *node) {
  while (node->kind == SYNTAX_CAST || node->kind == SYNTAX_COMPOUND_LITERAL) node = node->parts[0];
  bool aggregate = subobject.type->kind == TYPE_RECORD || subobject.type->kind == TYPE_ARRAY;
  if (node->kind == SYNTAX_LIST && aggregate) {
    read_list(reader, subobject, node);
    return;
  }
  if (node->kind == SYNTAX_LIST && node->n_parts == 1) node = node->parts[0];
  struct constant constant = {subobject.offset, subobject.type->size, node};
  ARENA_PUSH(reader->arena, reader->constants, constant);
}

struct constants constants_of(struct arena *arena, const struct variable *variable) {
  struct reader reader = {.arena = arena};
  if (variable->initial != NULL) read_value(&reader, (struct subobject){variable->type, 0}, variable->initial);
  return reader.constants;
}

bool constant_integer(const struct syntax *node, int64_t *value) {
  int64_t a, b;
  switch (node->kind) {
  case SYNTAX_INTEGER:
    *value = node->integer;
    return true;
  case SYNTAX_CAST:
    return constant_integer(node->parts[0], value);
  case SYNTAX_UNARY:
    if (node->operation != OPERATOR_MINUS || !constant_integer(node->parts[0], &a)) return false;
    *value = -a;
    return true;
  case SYNTAX_VARIABLE:
    return node->variable->is_constant && node->variable->initial != NULL &&
           constant_integer(node->variable->initial, value);
  case SYNTAX_SELECT:
    return constant_integer(node->parts[0], &a) && constant_integer(node->parts[a != 0 ? 1 : 2], value);
  case SYNTAX_BINARY: {
    bool overflows;
    if (node->type->kind != TYPE_INTEGER || !constant_integer(node->parts[0], &a) ||
        !constant_integer(node->parts[1], &b))
      return false;
    struct value result =
        value_binary(node->operation, value_integer(a, a), value_integer(b, b), node->type, &overflows);
    *value = result.low;
    return result.low == result.high;
  }
  default:
    return false;
  }
}
