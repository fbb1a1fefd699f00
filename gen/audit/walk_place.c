/* Places: what an lvalue names, as a pointer into an object. */
#include "gen/audit/walk.h"

static const struct path *extend(struct walk *walk, struct value at, const struct type *record, int64_t which) {
  if (at.object < 0 || walk->objects[at.object].kind != OBJECT_ARENA) return at.path;
  struct path *path = arena_alloc(walk->memory, sizeof *path);
  *path = (struct path){at.path, record, record != NULL ? (int)which : 0, record != NULL ? 0 : which};
  return path;
}

/* The part of a place at `offset` is a slot of its own: nothing of it reaches into its neighbours. Variables of a
 * function stay whole, as rows of their arrays are read across. */
static struct value enter_slot(struct walk *walk, struct value at, int64_t offset, int64_t size) {
  if (at.object >= 0 && walk->objects[at.object].kind == OBJECT_LOCAL) {
    at.low = bounded_add(at.low, offset);
    at.high = bounded_add(at.high, offset);
    return at;
  }
  at.base += at.low + offset;
  at.base_width += at.high - at.low;
  at.low = at.high = 0;
  at.span = size;
  return at;
}

struct value walk_move(struct value at, struct value index, int64_t size, int sign) {
  at.origin |= index.origin;
  at.blame |= index.blame | (at.loops & index.loops);
  at.loops |= index.loops;
  if (index.kind != VALUE_INTEGER) return value_unknown_pointer(at.origin | ORIGIN_DATA);
  if (at.object < 0) return value_unknown_pointer(at.origin);
  int64_t a = bounded_multiply(index.low, sign * size), b = bounded_multiply(index.high, sign * size);
  at.low = bounded_add(at.low, a < b ? a : b);
  at.high = bounded_add(at.high, a < b ? b : a);
  return at;
}

static bool check_index(struct walk *walk, const struct syntax *node, const struct type *array, struct value at,
                        struct value index) {
  if (index.kind != VALUE_INTEGER || array->count < 0) return true;
  if (index.low >= 0 && index.high < array->count) return true;
  uint64_t doubt = walk_doubt(walk, index) | walk_doubt(walk, at);
  bool certain = doubt == 0;
  walk_fail(walk, FAILURE_BOUNDS, certain ? VERDICT_BROKEN : VERDICT_CANNOT_TELL, node, doubt,
            certain ? "'%s' reaches %lld of %s[%lld]" : "'%s' may reach %lld of %s[%lld]", walk_spell(walk, node),
            (long long)(index.low < 0 ? index.low : index.high), walk_slot_name(walk, at), (long long)array->count);
  return false;
}

static struct place index_place(struct walk *walk, struct syntax *node) {
  const struct type *outer = node->parts[0]->type;
  struct syntax *base = syntax_bare(node->parts[0]);
  bool is_array = base->type->kind == TYPE_ARRAY && base->kind != SYNTAX_VARIABLE;
  if (base->kind == SYNTAX_VARIABLE) is_array = base->type->kind == TYPE_ARRAY && !base->variable->is_parameter;
  struct value at;
  const struct type *type = base->type;
  if (type->kind == TYPE_VECTOR) {
    struct place vector = walk_place(walk, base);
    walk_evaluate(walk, node->parts[1]);
    return (struct place){vector.at, node->type};
  }
  at = is_array ? walk_place(walk, base).at : walk_evaluate(walk, node->parts[0]);
  struct value index = walk_evaluate(walk, node->parts[1]);
  if (index.kind == VALUE_POINTER && at.kind != VALUE_POINTER)
    return (struct place){value_unknown_pointer(0), node->type};
  const struct type *element = is_array ? type->element : outer->element != NULL ? outer->element : node->type;
  if (at.kind != VALUE_POINTER) at = value_unknown_pointer(at.origin);
  bool part = element->kind == TYPE_ARRAY || element->kind == TYPE_RECORD;
  if (is_array && part && !check_index(walk, node, type, at, index))
    return (struct place){value_unknown_pointer(at.origin | ORIGIN_TOLD), node->type};
  struct value moved = walk_move(at, index, element->size, 1);
  bool within =
      is_array && type->count >= 0 && index.kind == VALUE_INTEGER && index.low >= 0 && index.high < type->count;
  if (is_array && part && within) {
    moved = enter_slot(walk, moved, 0, element->size);
    if (index.low == index.high) moved.path = extend(walk, moved, NULL, index.low);
  }
  return (struct place){moved, node->type};
}

static struct place member_place(struct walk *walk, struct syntax *node) {
  struct place whole = walk_place(walk, node->parts[0]);
  const struct type *record = node->parts[0]->type;
  if (record->kind != TYPE_RECORD || whole.at.object < 0 || record->members[node->member].offset < 0)
    return (struct place){value_unknown_pointer(whole.at.origin), node->type};
  const struct member *member = &record->members[node->member];
  if (whole.at.low < 0 || bounded_add(whole.at.high, record->size) > whole.at.span) {
    walk_fail(walk, FAILURE_BOUNDS, walk_doubt(walk, whole.at) == 0 ? VERDICT_BROKEN : VERDICT_CANNOT_TELL, node,
              walk_doubt(walk, whole.at), "'%s' lies outside of %s", walk_spell(walk, node),
              walk_slot_name(walk, whole.at));
    return (struct place){value_unknown_pointer(whole.at.origin | ORIGIN_TOLD), node->type};
  }
  struct value at = enter_slot(walk, whole.at, member->offset, member->type->size);
  at.path = extend(walk, at, record, node->member);
  return (struct place){at, node->type};
}

struct place walk_place(struct walk *walk, struct syntax *node) {
  switch (node->kind) {
  case SYNTAX_VARIABLE:
    return (struct place){walk_address(walk, walk_variable(walk, node->variable)), node->variable->type};
  case SYNTAX_INDEX:
    return index_place(walk, node);
  case SYNTAX_MEMBER:
    return member_place(walk, node);
  case SYNTAX_CAST: {
    struct place place = walk_place(walk, node->parts[0]);
    place.type = node->type;
    return place;
  }
  case SYNTAX_UNARY:
    if (node->operation == OPERATOR_DEREFERENCE) {
      struct value at = walk_evaluate(walk, node->parts[0]);
      return (struct place){at.kind == VALUE_POINTER ? at : value_unknown_pointer(at.origin), node->type};
    }
    break;
  default:
    break;
  }
  struct value value = walk_evaluate(walk, node);
  return (struct place){value_unknown_pointer(value.origin), node->type};
}
