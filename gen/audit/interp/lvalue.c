/* Lvalues: what an lvalue names, as a pointer into an object. */
#include "gen/audit/interp/region.h"

static const struct path *extend(struct interp *interp, struct value at, const struct type *record, int64_t which) {
  if (at.object < 0 || interp->objects[at.object].kind != OBJECT_ARENA) return at.path;
  struct path *path = arena_alloc(interp->memory, sizeof *path);
  *path = (struct path){at.path, record, record != NULL ? (int)which : 0, record != NULL ? 0 : which};
  return path;
}

/* The part of an lvalue at `offset` is a slot of its own: nothing of it reaches into its neighbours. Variables of a
 * function stay whole, as rows of their arrays are read across; the host's arena is none of them. */
static struct value enter_slot(struct interp *interp, struct value at, int64_t offset, int64_t size) {
  at.linear = NULL;
  at.form = interp_region_offset(interp, at, offset);
  bool is_variable = at.object >= 0 && interp->objects[at.object].kind == OBJECT_LOCAL;
  if (is_variable && !interp_is_mirror(interp, at.object)) {
    at.low = bounded_add(at.low, offset);
    at.high = bounded_add(at.high, offset);
    return at;
  }
  at.base += at.low + offset;
  at.base_width += at.high - at.low;
  at.low = at.high = 0;
  at.slot_size = size;
  return at;
}

struct value interp_move(struct interp *interp, struct value at, struct value index, int64_t size, int sign) {
  at.origin |= index.origin;
  at.blame |= index.blame | (at.loops & index.loops);
  at.loops |= index.loops;
  if (index.kind != VALUE_INTEGER) return value_unknown_pointer(at.origin | ORIGIN_DATA);
  if (at.object < 0) return value_unknown_pointer(at.origin);
  at.linear = interp_linear_moved(interp, at, index, size, sign);
  at.form = interp_region_moved(interp, at, index, sign * size);
  int64_t a = bounded_multiply(index.low, sign * size), b = bounded_multiply(index.high, sign * size);
  at.low = bounded_add(at.low, a < b ? a : b);
  at.high = bounded_add(at.high, a < b ? b : a);
  return at;
}

static bool check_index(struct interp *interp, const struct syntax *node, const struct type *array, struct value at,
                        struct value index) {
  if (index.kind != VALUE_INTEGER || array->count < 0) return true;
  if (index.low >= 0 && index.high < array->count) return true;
  uint64_t imprecision = interp_imprecision(interp, index) | interp_imprecision(interp, at);
  bool certain = imprecision == 0;
  interp_fail(interp, FAILURE_BOUNDS, certain ? VERDICT_BROKEN : VERDICT_CANNOT_TELL, node, imprecision,
              certain ? "'%s' reaches %lld of %s[%lld]" : "'%s' may reach %lld of %s[%lld]", interp_spell(interp, node),
              (long long)(index.low < 0 ? index.low : index.high), interp_slot_name(interp, at),
              (long long)array->count);
  return false;
}

static struct lvalue index_lvalue(struct interp *interp, struct syntax *node) {
  const struct type *outer = node->parts[0]->type;
  struct syntax *base = syntax_bare(node->parts[0]);
  bool is_array = base->type->kind == TYPE_ARRAY && base->kind != SYNTAX_VARIABLE;
  if (base->kind == SYNTAX_VARIABLE) is_array = base->type->kind == TYPE_ARRAY && !base->variable->is_parameter;
  struct value at;
  const struct type *type = base->type;
  if (type->kind == TYPE_VECTOR) {
    struct lvalue vector = interp_lvalue(interp, base);
    interp_evaluate(interp, node->parts[1]);
    return (struct lvalue){vector.at, node->type};
  }
  at = is_array ? interp_lvalue(interp, base).at : interp_evaluate(interp, node->parts[0]);
  struct value index = interp_evaluate(interp, node->parts[1]);
  if (index.kind == VALUE_POINTER && at.kind != VALUE_POINTER)
    return (struct lvalue){value_unknown_pointer(0), node->type};
  const struct type *element = is_array ? type->element : outer->element != NULL ? outer->element : node->type;
  if (at.kind != VALUE_POINTER) at = value_unknown_pointer(at.origin);
  bool part = element->kind == TYPE_ARRAY || element->kind == TYPE_RECORD;
  if (is_array && part && !check_index(interp, node, type, at, index))
    return (struct lvalue){value_unknown_pointer(at.origin | ORIGIN_REPORTED), node->type};
  struct value moved = interp_move(interp, at, index, element->size, 1);
  bool within =
      is_array && type->count >= 0 && index.kind == VALUE_INTEGER && index.low >= 0 && index.high < type->count;
  if (is_array && part && within) {
    moved = enter_slot(interp, moved, 0, element->size);
    if (index.low == index.high) moved.path = extend(interp, moved, NULL, index.low);
  }
  return (struct lvalue){moved, node->type};
}

static struct lvalue member_lvalue(struct interp *interp, struct syntax *node) {
  struct lvalue whole = interp_lvalue(interp, node->parts[0]);
  const struct type *record = node->parts[0]->type;
  if (record->kind != TYPE_RECORD || whole.at.object < 0 || record->members[node->member].offset < 0)
    return (struct lvalue){value_unknown_pointer(whole.at.origin), node->type};
  const struct member *member = &record->members[node->member];
  if (whole.at.low < 0 || bounded_add(whole.at.high, record->size) > whole.at.slot_size) {
    interp_fail(interp, FAILURE_BOUNDS,
                interp_imprecision(interp, whole.at) == 0 ? VERDICT_BROKEN : VERDICT_CANNOT_TELL, node,
                interp_imprecision(interp, whole.at), "'%s' is outside of %s", interp_spell(interp, node),
                interp_slot_name(interp, whole.at));
    return (struct lvalue){value_unknown_pointer(whole.at.origin | ORIGIN_REPORTED), node->type};
  }
  struct value at = enter_slot(interp, whole.at, member->offset, member->type->size);
  at.path = extend(interp, at, record, node->member);
  return (struct lvalue){at, node->type};
}

struct lvalue interp_lvalue(struct interp *interp, struct syntax *node) {
  switch (node->kind) {
  case SYNTAX_VARIABLE:
    return (struct lvalue){interp_address(interp, interp_variable(interp, node->variable)), node->variable->type};
  case SYNTAX_INDEX:
    return index_lvalue(interp, node);
  case SYNTAX_MEMBER:
    return member_lvalue(interp, node);
  case SYNTAX_CAST: {
    struct lvalue lvalue = interp_lvalue(interp, node->parts[0]);
    lvalue.type = node->type;
    return lvalue;
  }
  case SYNTAX_UNARY:
    if (node->operation == OPERATOR_DEREFERENCE) {
      struct value at = interp_evaluate(interp, node->parts[0]);
      return (struct lvalue){at.kind == VALUE_POINTER ? at : value_unknown_pointer(at.origin), node->type};
    }
    break;
  default:
    break;
  }
  struct value value = interp_evaluate(interp, node);
  return (struct lvalue){value_unknown_pointer(value.origin), node->type};
}
