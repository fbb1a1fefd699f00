/* What constant variables hold. */
#include "gen/audit/walk.h"

/* The address of a variable that a table holds. */
static struct value constant_address(struct walk *walk, const struct object *table, int64_t offset,
                                     struct value unknown) {
  for (int i = 0; i < table->constants.count; i++) {
    const struct syntax *value = syntax_bare((struct syntax *)table->constants.items[i].value);
    if (table->constants.items[i].offset != offset || value->kind != SYNTAX_UNARY ||
        value->operation != OPERATOR_ADDRESS)
      continue;
    const struct syntax *of = syntax_bare(value->parts[0]);
    if (of->kind == SYNTAX_VARIABLE && of->variable->lasting)
      return walk_address(walk, walk_variable(walk, of->variable));
  }
  return unknown;
}

struct value walk_constant(struct walk *walk, struct place place, unsigned origin) {
  struct object *object = &walk->objects[place.at.object];
  if (!object->has_constants) object->constants = constants_of(walk->memory, object->variable);
  object->has_constants = true;
  int64_t from = place.at.base + place.at.low, to = place.at.base + place.at.base_width + place.at.high;
  struct value value = value_of_type(place.type, origin);
  if (place.type->kind == TYPE_POINTER && from == to) return constant_address(walk, object, from, value);
  if (place.type->kind != TYPE_INTEGER) return value;
  bool any = false;
  for (int i = 0; i < object->constants.count; i++) {
    const struct constant *constant = &object->constants.items[i];
    int64_t number, step = constant->offset - from;
    if (constant->offset < from || constant->offset > to || constant->size != place.type->size) continue;
    if (object->type->kind == TYPE_ARRAY && step % object->type->element->size != 0) continue;
    if (!constant_integer(constant->value, &number)) return value;
    struct value one = value_integer(number, number);
    value = any ? value_join(value, one) : one;
    any = true;
  }
  if (!any) value = value_integer(0, 0);
  value.origin = origin;
  value.loops = place.at.loops;
  value.blame |= place.at.loops;
  return value;
}
