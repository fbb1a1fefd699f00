/* What constant variables hold. */
#include "gen/audit/interp/interp.h"

/* The address of a variable that a table holds. */
static struct value constant_address(struct interp *interp, const struct object *table, int64_t offset,
                                     struct value unknown) {
  for (int i = 0; i < table->constants.count; i++) {
    const struct syntax *value = syntax_bare((struct syntax *)table->constants.items[i].value);
    if (table->constants.items[i].offset != offset || value->kind != SYNTAX_UNARY ||
        value->operation != OPERATOR_ADDRESS)
      continue;
    const struct syntax *of = syntax_bare(value->parts[0]);
    if (of->kind == SYNTAX_VARIABLE && of->variable->is_static)
      return interp_address(interp, interp_variable(interp, of->variable));
  }
  return unknown;
}

struct value interp_constant(struct interp *interp, struct lvalue lvalue, unsigned origin) {
  struct object *object = &interp->objects[lvalue.at.object];
  if (!object->has_constants) object->constants = constants_of(interp->memory, object->variable);
  object->has_constants = true;
  int64_t from = lvalue.at.base + lvalue.at.low, to = lvalue.at.base + lvalue.at.base_width + lvalue.at.high;
  struct value value = value_of_type(lvalue.type, origin);
  if (lvalue.type->kind == TYPE_POINTER && from == to) return constant_address(interp, object, from, value);
  if (lvalue.type->kind != TYPE_INTEGER) return value;
  bool any = false;
  for (int i = 0; i < object->constants.count; i++) {
    const struct constant *constant = &object->constants.items[i];
    int64_t number, step = constant->offset - from;
    if (constant->offset < from || constant->offset > to || constant->size != lvalue.type->size) continue;
    if (object->type->kind == TYPE_ARRAY && step % object->type->element->size != 0) continue;
    if (!constant_integer(constant->value, &number)) return value;
    struct value one = value_integer(number, number);
    value = any ? value_join(value, one) : one;
    any = true;
  }
  if (!any) value = value_integer(0, 0);
  value.origin = origin;
  value.loops = lvalue.at.loops;
  value.blame |= lvalue.at.loops;
  return value;
}
