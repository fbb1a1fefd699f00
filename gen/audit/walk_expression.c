/* Expressions. */
#include "gen/audit/walk.h"

struct note *walk_note(struct walk *walk, struct syntax *node) {
  if (node->note == NULL) node->note = arena_alloc(walk->memory, sizeof *node->note);
  return node->note;
}

void walk_note_choice(struct walk *walk, struct syntax *node, struct value condition) {
  struct note *note = walk_note(walk, node);
  note->seen = true;
  if (value_truth(condition) < 0) note->origin |= condition.origin;
}

uint64_t walk_guard(struct value condition) {
  return condition.loops != 0 ? condition.loops : BLAME_ALWAYS;
}

/* ---- Operators ---- */

/* A shift by as many bits as there are, or by fewer than none; a division by zero. */
static void check_second(struct walk *walk, const struct syntax *node, enum operator_kind operation, struct value b) {
  int64_t bits = node->type->size > 4 ? 64 : 32;
  bool shifts = operation == OPERATOR_LEFT || operation == OPERATOR_RIGHT;
  bool divides = operation == OPERATOR_DIVIDE || operation == OPERATOR_REMAINDER;
  uint64_t doubt = b.blame | walk->guards;
  if (shifts && (b.low < 0 || b.high >= bits))
    walk_fail(walk, FAILURE_OVERFLOW, doubt == 0 ? VERDICT_BROKEN : VERDICT_CANNOT_TELL, node, doubt,
              "'%s' shifts by %lld, of %lld bits", walk_spell(walk, node), (long long)(b.low < 0 ? b.low : b.high),
              (long long)bits);
  if (divides && b.low <= 0 && b.high >= 0) {
    if (b.low != 0 && b.high != 0) doubt |= walk_guard(b);
    walk_fail(walk, FAILURE_OVERFLOW, doubt == 0 ? VERDICT_BROKEN : VERDICT_CANNOT_TELL, node, doubt,
              doubt == 0 ? "'%s' divides by zero" : "'%s' may divide by zero", walk_spell(walk, node));
  }
}

static struct value evaluate_arithmetic(struct walk *walk, struct syntax *node, enum operator_kind operation,
                                        struct value a, struct value b) {
  const struct type *type = node->type;
  unsigned origin = a.origin | b.origin;
  if (a.kind == VALUE_POINTER && b.kind == VALUE_INTEGER && type->kind == TYPE_POINTER &&
      (operation == OPERATOR_ADD || operation == OPERATOR_SUBTRACT))
    return walk_move(a, b, type->element->size, operation == OPERATOR_ADD ? 1 : -1);
  if (b.kind == VALUE_POINTER && a.kind == VALUE_INTEGER && type->kind == TYPE_POINTER && operation == OPERATOR_ADD)
    return walk_move(b, a, type->element->size, 1);
  if (a.kind == VALUE_INTEGER && b.kind == VALUE_INTEGER && type->kind == TYPE_INTEGER && type->size > 0) {
    bool overflows, followed = (origin & ~(unsigned)ORIGIN_CHOSEN) == 0;
    if (followed) check_second(walk, node, operation, b);
    struct value value = value_binary(operation, a, b, type, &overflows);
    uint64_t doubt = a.blame | b.blame | (a.loops & b.loops) | walk->guards;
    if (overflows && followed)
      walk_fail(walk, FAILURE_OVERFLOW, doubt == 0 ? VERDICT_BROKEN : VERDICT_CANNOT_TELL, node, doubt,
                doubt == 0 ? "'%s' leaves the range of its type" : "'%s' may leave the range of its type",
                walk_spell(walk, node));
    return value;
  }
  bool equality = operation == OPERATOR_EQUAL || operation == OPERATOR_NOT_EQUAL;
  bool to_null = (value_is_null(a) && b.kind == VALUE_POINTER) || (value_is_null(b) && a.kind == VALUE_POINTER);
  if (equality && to_null && (a.kind == VALUE_POINTER ? a : b).object >= 0)
    return value_integer(operation == OPERATOR_NOT_EQUAL, operation == OPERATOR_NOT_EQUAL);
  struct value value = value_of_type(type, origin);
  value.loops = a.loops | b.loops;
  value.blame |= value.loops;
  if (value.kind == VALUE_INTEGER && operation >= OPERATOR_LESS && operation <= OPERATOR_NOT_EQUAL)
    value.low = 0, value.high = 1;
  return value;
}

/* Whether an address as a number is a multiple of a power of two, as the arena's own address is of 64. */
static bool stands_at_multiple(struct walk *walk, struct syntax *address, struct value unit) {
  const struct syntax *bare = syntax_bare(address);
  if (bare->type->kind != TYPE_POINTER || address->type->kind != TYPE_INTEGER) return false;
  struct value at = walk_evaluate(walk, (struct syntax *)bare);
  bool power = unit.kind == VALUE_INTEGER && unit.low == unit.high && unit.low > 0 && unit.low <= 64 &&
               (unit.low & (unit.low - 1)) == 0;
  return power && at.kind == VALUE_POINTER && at.object == walk->arena_object && at.base_width == 0 &&
         at.low == at.high && bounded_add(at.base, at.low) % unit.low == 0;
}

/* a && b, a || b: the second is looked at under what the first says. */
static struct value evaluate_logic(struct walk *walk, struct syntax *node) {
  struct value first = walk_evaluate(walk, node->parts[0]);
  walk_note_choice(walk, node, first);
  int truth = value_truth(first), stops = node->operation == OPERATOR_OR;
  struct value result = value_integer(stops, stops);
  result.origin = first.origin;
  if (truth == stops) return result;
  struct state *before = walk_save(walk);
  int count = walk->n_objects;
  uint64_t guards = walk->guards;
  if (truth < 0) walk->guards |= walk_guard(first);
  struct value second = walk_assume(walk, node->parts[0], !stops) ? walk_evaluate(walk, node->parts[1]) : first;
  walk->guards = guards;
  walk_merge(walk, before, count, first);
  walk_drop(walk, before);
  int other = value_truth(second);
  result = truth < 0 || other < 0 ? value_integer(0, 1) : value_integer(other, other);
  if (truth < 0 && other == stops) result = value_integer(0, 1);
  result.origin = first.origin | second.origin;
  result.loops = first.loops | second.loops;
  result.blame = result.low == result.high ? 0 : first.blame | second.blame | result.loops;
  return result;
}

static bool same_expression(const struct syntax *a, const struct syntax *b) {
  while (a->kind == SYNTAX_CAST) a = a->parts[0];
  while (b->kind == SYNTAX_CAST) b = b->parts[0];
  if (a->kind != b->kind || a->operation != b->operation || a->n_parts != b->n_parts) return false;
  switch (a->kind) {
  case SYNTAX_INTEGER:
    return a->integer == b->integer;
  case SYNTAX_VARIABLE:
    return a->variable == b->variable;
  case SYNTAX_BINARY:
  case SYNTAX_INDEX:
    return same_expression(a->parts[0], b->parts[0]) && same_expression(a->parts[1], b->parts[1]);
  default:
    return false;
  }
}

/* a < b ? a : b is the least of both, and its like the most: 1 and 2; 0 for another choice. */
static int find_extreme(struct syntax *node) {
  struct syntax *condition = syntax_bare(node->parts[0]);
  if (condition->kind != SYNTAX_BINARY || condition->type->kind != TYPE_INTEGER) return 0;
  bool less = condition->operation == OPERATOR_LESS || condition->operation == OPERATOR_LESS_EQUAL;
  bool greater = condition->operation == OPERATOR_GREATER || condition->operation == OPERATOR_GREATER_EQUAL;
  if (!less && !greater) return 0;
  bool straight =
      same_expression(condition->parts[0], node->parts[1]) && same_expression(condition->parts[1], node->parts[2]);
  bool crossed =
      same_expression(condition->parts[0], node->parts[2]) && same_expression(condition->parts[1], node->parts[1]);
  if (!straight && !crossed) return 0;
  return less == straight ? 1 : 2;
}

static struct value extreme_of(struct value a, struct value b, bool least) {
  struct value value = a;
  value.low = (b.low < a.low) == least ? b.low : a.low;
  value.high = (b.high < a.high) == least ? b.high : a.high;
  value.origin |= b.origin;
  value.blame |= b.blame | (a.loops & b.loops);
  value.loops |= b.loops;
  return value;
}

static struct value evaluate_select(struct walk *walk, struct syntax *node) {
  struct value condition = walk_evaluate(walk, node->parts[0]);
  walk_note_choice(walk, node, condition);
  int truth = value_truth(condition);
  if (truth >= 0) return walk_evaluate(walk, node->parts[truth ? 1 : 2]);
  int extreme = find_extreme(node), count = walk->n_objects;
  struct state *before = walk_save(walk);
  uint64_t guards = walk->guards;
  if (extreme == 0) walk->guards |= walk_guard(condition);
  struct value yes = {0}, no = {0};
  bool can_be = extreme != 0 || walk_assume(walk, node->parts[0], true);
  if (can_be) yes = walk_evaluate(walk, node->parts[1]);
  struct state *after = walk_save(walk);
  walk_restore(walk, before, count);
  bool can_fail = extreme != 0 || walk_assume(walk, node->parts[0], false);
  if (can_fail) no = walk_evaluate(walk, node->parts[2]);
  walk->guards = guards;
  walk_merge(walk, after, count, condition);
  /* What was assumed in the branches is forgotten behind them. */
  for (int i = 0; i < count; i++)
    if (before[i].value.kind == VALUE_INTEGER) walk->states[i].value = before[i].value;
  walk_drop(walk, after);
  walk_drop(walk, before);
  struct value value = extreme != 0 && yes.kind == VALUE_INTEGER && no.kind == VALUE_INTEGER
                           ? extreme_of(yes, no, extreme == 1)
                           : value_join(yes, no);
  value.origin |= condition.origin;
  value.loops |= condition.loops;
  if (extreme == 0) value.blame |= walk_guard(condition);
  return value;
}

static struct value evaluate_unary(struct walk *walk, struct syntax *node) {
  if (node->operation == OPERATOR_ADDRESS) {
    struct syntax *operand = syntax_bare(node->parts[0]);
    if (operand->kind == SYNTAX_FUNCTION) return value_number(0);
    return walk_place(walk, node->parts[0]).at;
  }
  if (node->operation == OPERATOR_DEREFERENCE) return walk_load(walk, walk_place(walk, node), node);
  struct value value = walk_evaluate(walk, node->parts[0]);
  if (node->operation == OPERATOR_MINUS && value.kind == VALUE_INTEGER)
    return evaluate_arithmetic(walk, node, OPERATOR_SUBTRACT, value_integer(0, 0), value);
  if (node->operation == OPERATOR_MINUS && value.is_known) {
    value.real = -value.real;
    return value;
  }
  if (node->operation == OPERATOR_PLUS) return value;
  struct value result = value_of_type(node->type, value.origin);
  result.loops = value.loops;
  result.blame |= value.loops;
  if (node->operation == OPERATOR_NOT && result.kind == VALUE_INTEGER) {
    int truth = value_truth(value);
    result.low = truth < 0 ? 0 : !truth;
    result.high = truth < 0 ? 1 : !truth;
    if (truth >= 0) result.blame = 0;
  }
  return result;
}

static struct value evaluate_assign(struct walk *walk, struct syntax *node) {
  struct value value = walk_evaluate(walk, node->parts[1]);
  struct place place = walk_place(walk, node->parts[0]);
  if (node->operation != OPERATOR_NONE) {
    struct value old = walk_load(walk, place, node->parts[0]);
    value = evaluate_arithmetic(walk, node, node->operation, old, value);
  }
  walk_store(walk, place, value, node->parts[0]);
  return value;
}

static struct value evaluate_increment(struct walk *walk, struct syntax *node) {
  struct place place = walk_place(walk, node->parts[0]);
  struct value old = walk_load(walk, place, node->parts[0]);
  struct value value = evaluate_arithmetic(walk, node, OPERATOR_ADD, old, value_integer(node->integer, node->integer));
  walk_store(walk, place, value, node->parts[0]);
  return node->prefix ? value : old;
}

static struct value evaluate_cast(struct walk *walk, struct syntax *node) {
  struct value value = walk_evaluate(walk, node->parts[0]);
  if (node->type->kind == TYPE_VOID || node->type->kind == TYPE_FUNCTION) return value;
  if (node->type->kind == TYPE_POINTER && value.kind == VALUE_POINTER && value.object == walk->arena_object)
    if (walk_set_arena(walk, node->type->element, node)) value = walk_address(walk, walk->arena_object);
  return value_convert(value, node->type);
}

/* Where the parts come from, all together. */
static unsigned evaluate_parts(struct walk *walk, struct syntax *node) {
  unsigned origin = 0;
  for (int i = 0; i < node->n_parts; i++)
    if (node->parts[i] != NULL && node->parts[i]->kind != SYNTAX_DESIGNATOR)
      origin |= walk_evaluate(walk, node->parts[i]).origin;
  return origin;
}

struct value walk_evaluate(struct walk *walk, struct syntax *node) {
  switch (node->kind) {
  case SYNTAX_INTEGER:
    return value_integer(node->integer, node->integer);
  case SYNTAX_REAL: {
    struct value value = value_number(0);
    value.is_known = true;
    value.real = node->real;
    return value;
  }
  case SYNTAX_STRING:
    return value_unknown_pointer(0);
  case SYNTAX_VARIABLE:
    if (node->variable->is_parameter && node->variable->type->kind == TYPE_ARRAY)
      return walk->states[walk_variable(walk, node->variable)].value;
    return walk_load(walk, walk_place(walk, node), node);
  case SYNTAX_MEMBER:
  case SYNTAX_INDEX:
    return walk_load(walk, walk_place(walk, node), node);
  case SYNTAX_UNARY:
    return evaluate_unary(walk, node);
  case SYNTAX_INCREMENT:
    return evaluate_increment(walk, node);
  case SYNTAX_BINARY: {
    if (node->operation == OPERATOR_AND || node->operation == OPERATOR_OR) return evaluate_logic(walk, node);
    struct value a = walk_evaluate(walk, node->parts[0]), b = walk_evaluate(walk, node->parts[1]);
    if (node->operation == OPERATOR_REMAINDER && stands_at_multiple(walk, node->parts[0], b))
      return value_integer(0, 0);
    return node->operation == OPERATOR_COMMA ? b : evaluate_arithmetic(walk, node, node->operation, a, b);
  }
  case SYNTAX_ASSIGN:
    return evaluate_assign(walk, node);
  case SYNTAX_SELECT:
    return evaluate_select(walk, node);
  case SYNTAX_CAST:
    return evaluate_cast(walk, node);
  case SYNTAX_CALL:
    return walk_call(walk, node);
  case SYNTAX_COMPOUND_LITERAL:
    if (node->type->kind == TYPE_RECORD && node->n_parts == 1) return walk_evaluate(walk, node->parts[0]);
    return value_of_type(node->type, evaluate_parts(walk, node));
  case SYNTAX_LIST:
    if (node->type->kind == TYPE_RECORD) return walk_record(walk, node);
    if (node->type->kind == TYPE_ARRAY && node->type->element->kind == TYPE_POINTER) return walk_pointers(walk, node);
    return value_of_type(node->type, evaluate_parts(walk, node));
  case SYNTAX_DESIGNATED:
    return value_of_type(node->type, evaluate_parts(walk, node));
  case SYNTAX_STATEMENTS:
    walk_statement(walk, node->parts[0]);
    return value_of_type(node->type, ORIGIN_DATA);
  case SYNTAX_FUNCTION:
    return value_number(0);
  default:
    return value_of_type(node->type, evaluate_parts(walk, node) | ORIGIN_DATA);
  }
}
