/* Expressions. */
#include "gen/audit/interp/region.h"

struct note *interp_note(struct interp *interp, struct syntax *node) {
  if (node->note == NULL) node->note = arena_alloc(interp->memory, sizeof *node->note);
  return node->note;
}

void interp_note_choice(struct interp *interp, struct syntax *node, struct value condition) {
  struct note *note = interp_note(interp, node);
  note->seen = true;
  if (value_truth(condition) >= 0) return;
  note->origin |= condition.origin;
  note->is_undecided = true;
}

uint64_t interp_guard(struct value condition) {
  return condition.loops != 0 ? condition.loops : BLAME_ALWAYS;
}

/* ---- Operators ---- */

/* A shift by as many bits as there are, or by fewer than none; a division by zero. */
static void check_second(struct interp *interp, const struct syntax *node, enum operator_kind operation,
                         struct value b) {
  int64_t bits = node->type->size > 4 ? 64 : 32;
  bool shifts = operation == OPERATOR_LEFT || operation == OPERATOR_RIGHT;
  bool divides = operation == OPERATOR_DIVIDE || operation == OPERATOR_REMAINDER;
  uint64_t imprecision = b.blame | interp->guards;
  if (shifts && (b.low < 0 || b.high >= bits))
    interp_fail(interp, FAILURE_OVERFLOW, imprecision == 0 ? VERDICT_BROKEN : VERDICT_CANNOT_TELL, node, imprecision,
                "'%s' shifts by %lld, of %lld bits", interp_spell(interp, node),
                (long long)(b.low < 0 ? b.low : b.high), (long long)bits);
  if (divides && b.low <= 0 && b.high >= 0) {
    if (b.low != 0 && b.high != 0) imprecision |= interp_guard(b);
    interp_fail(interp, FAILURE_OVERFLOW, imprecision == 0 ? VERDICT_BROKEN : VERDICT_CANNOT_TELL, node, imprecision,
                imprecision == 0 ? "'%s' divides by zero" : "'%s' may divide by zero", interp_spell(interp, node));
  }
}

static struct value evaluate_arithmetic(struct interp *interp, struct syntax *node, enum operator_kind operation,
                                        struct value a, struct value b) {
  const struct type *type = node->type;
  unsigned origin = a.origin | b.origin;
  if (a.kind == VALUE_POINTER && b.kind == VALUE_INTEGER && type->kind == TYPE_POINTER &&
      (operation == OPERATOR_ADD || operation == OPERATOR_SUBTRACT))
    return interp_move(interp, a, b, type->element->size, operation == OPERATOR_ADD ? 1 : -1);
  if (b.kind == VALUE_POINTER && a.kind == VALUE_INTEGER && type->kind == TYPE_POINTER && operation == OPERATOR_ADD)
    return interp_move(interp, b, a, type->element->size, 1);
  if (a.kind == VALUE_INTEGER && b.kind == VALUE_INTEGER && type->kind == TYPE_INTEGER && type->size > 0) {
    bool overflows, followed = (origin & ~(unsigned)ORIGIN_CHOSEN) == 0;
    if (followed) check_second(interp, node, operation, b);
    struct value value = value_binary(operation, a, b, type, &overflows);
    uint64_t imprecision = a.blame | b.blame | (a.loops & b.loops) | interp->guards;
    if (overflows && followed)
      interp_fail(interp, FAILURE_OVERFLOW, imprecision == 0 ? VERDICT_BROKEN : VERDICT_CANNOT_TELL, node, imprecision,
                  imprecision == 0 ? "'%s' leaves the range of its type" : "'%s' may leave the range of its type",
                  interp_spell(interp, node));
    interp_linear_binary(interp, operation, a, b, &value);
    interp_region_binary(interp, operation, a, b, type, &value);
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
static bool is_aligned_to(struct interp *interp, struct syntax *address, struct value alignment) {
  const struct syntax *bare = syntax_bare(address);
  if (bare->type->kind != TYPE_POINTER || address->type->kind != TYPE_INTEGER) return false;
  struct value at = interp_evaluate(interp, (struct syntax *)bare);
  bool power = alignment.kind == VALUE_INTEGER && alignment.low == alignment.high && alignment.low > 0 &&
               alignment.low <= 64 && (alignment.low & (alignment.low - 1)) == 0;
  return power && at.kind == VALUE_POINTER && at.object == interp->arena_object && at.base_width == 0 &&
         at.low == at.high && bounded_add(at.base, at.low) % alignment.low == 0;
}

/* a && b, a || b: the second operand is evaluated under the condition of the first. */
static struct value evaluate_logic(struct interp *interp, struct syntax *node) {
  struct value first = interp_evaluate(interp, node->parts[0]);
  interp_note_choice(interp, node, first);
  int truth = value_truth(first), stops = node->operation == OPERATOR_OR;
  struct value result = value_integer(stops, stops);
  result.origin = first.origin;
  if (truth == stops) return result;
  struct state *before = interp_save(interp);
  int count = interp->n_objects;
  uint64_t guards = interp->guards;
  if (truth < 0) interp->guards |= interp_guard(first);
  struct value second = interp_assume(interp, node->parts[0], !stops) ? interp_evaluate(interp, node->parts[1]) : first;
  interp->guards = guards;
  interp_join(interp, before, count, first);
  interp_drop(interp, before);
  int other = value_truth(second);
  result = truth < 0 || other < 0 ? value_integer(0, 1) : value_integer(other, other);
  if (truth < 0 && other == stops) result = value_integer(0, 1);
  result.origin = first.origin | second.origin;
  result.loops = first.loops | second.loops;
  result.blame = result.low == result.high ? 0 : first.blame | second.blame | result.loops;
  return result;
}

static bool same_expression(struct interp *interp, struct syntax *a, struct syntax *b) {
  a = interp_unconverted(interp, a);
  b = interp_unconverted(interp, b);
  if (a->kind != b->kind || a->operation != b->operation || a->n_parts != b->n_parts) return false;
  switch (a->kind) {
  case SYNTAX_INTEGER:
    return a->integer == b->integer;
  case SYNTAX_VARIABLE:
    return a->variable == b->variable;
  case SYNTAX_CAST:
    return a->type->kind == b->type->kind && a->type->size == b->type->size &&
           a->type->is_signed == b->type->is_signed && a->type->is_bool == b->type->is_bool &&
           same_expression(interp, a->parts[0], b->parts[0]);
  case SYNTAX_BINARY:
  case SYNTAX_INDEX:
    return same_expression(interp, a->parts[0], b->parts[0]) && same_expression(interp, a->parts[1], b->parts[1]);
  default:
    return false;
  }
}

/* a < b ? a : b is the least of both, and its like the most: 1 and 2; 0 for another choice. */
static int find_extreme(struct interp *interp, struct syntax *node) {
  struct syntax *condition = syntax_bare(node->parts[0]);
  if (condition->kind != SYNTAX_BINARY || condition->type->kind != TYPE_INTEGER) return 0;
  bool less = condition->operation == OPERATOR_LESS || condition->operation == OPERATOR_LESS_EQUAL;
  bool greater = condition->operation == OPERATOR_GREATER || condition->operation == OPERATOR_GREATER_EQUAL;
  if (!less && !greater) return 0;
  bool straight = same_expression(interp, condition->parts[0], node->parts[1]) &&
                  same_expression(interp, condition->parts[1], node->parts[2]);
  bool crossed = same_expression(interp, condition->parts[0], node->parts[2]) &&
                 same_expression(interp, condition->parts[1], node->parts[1]);
  if (!straight && !crossed) return 0;
  return less == straight ? 1 : 2;
}

/* x < LIMIT ? x : LIMIT of real numbers; NULL for another choice. */
static const struct syntax *find_limit(struct interp *interp, struct syntax *node, struct syntax *x) {
  node = syntax_bare(node);
  if (node->kind != SYNTAX_SELECT) return NULL;
  struct syntax *condition = syntax_bare(node->parts[0]), *limit = syntax_bare(node->parts[2]);
  const bool fits = condition->kind == SYNTAX_BINARY && condition->operation == OPERATOR_LESS &&
                    limit->kind == SYNTAX_REAL && x->type->kind == TYPE_REAL &&
                    same_expression(interp, condition->parts[0], x) && same_expression(interp, node->parts[1], x);
  struct syntax *above = fits ? syntax_bare(condition->parts[1]) : NULL;
  return above != NULL && above->kind == SYNTAX_REAL && above->real == limit->real ? limit : NULL;
}

/* x > 0 ? (int)(x < LIMIT ? x : LIMIT) : 0 is 0 to LIMIT, whatever x is: not a number is not above 0. */
static bool find_clamp(struct interp *interp, struct syntax *node, int64_t *most) {
  struct syntax *condition = syntax_bare(node->parts[0]), *yes = node->parts[1], *no = syntax_bare(node->parts[2]);
  while (yes->kind == SYNTAX_CAST && yes->type->kind == TYPE_INTEGER && yes->parts[0]->type->kind == TYPE_INTEGER)
    yes = yes->parts[0];
  if (condition->kind != SYNTAX_BINARY || condition->operation != OPERATOR_GREATER || yes->kind != SYNTAX_CAST ||
      no->kind != SYNTAX_INTEGER || no->integer != 0)
    return false;
  const struct syntax *zero = syntax_bare(condition->parts[1]);
  const struct syntax *limit = find_limit(interp, yes->parts[0], condition->parts[0]);
  if (zero->kind != SYNTAX_REAL || zero->real != 0 || limit == NULL || !(limit->real >= 0 && limit->real <= INT32_MAX))
    return false;
  *most = (int64_t)limit->real;
  return true;
}

static struct value extreme_of(struct value a, struct value b, bool least) {
  struct value value = a;
  value.linear = NULL;
  value.form = NULL;
  value.low = (b.low < a.low) == least ? b.low : a.low;
  value.high = (b.high < a.high) == least ? b.high : a.high;
  value.origin |= b.origin;
  value.blame |= b.blame | (a.loops & b.loops);
  value.loops |= b.loops;
  return value;
}

static struct value evaluate_select(struct interp *interp, struct syntax *node) {
  struct value condition = interp_evaluate(interp, node->parts[0]);
  interp_note_choice(interp, node, condition);
  int truth = value_truth(condition);
  if (truth >= 0) return interp_evaluate(interp, node->parts[truth ? 1 : 2]);
  int extreme = find_extreme(interp, node), count = interp->n_objects;
  struct state *before = interp_save(interp);
  uint64_t guards = interp->guards;
  if (extreme == 0) interp->guards |= interp_guard(condition);
  struct value yes = {0}, no = {0};
  bool can_be = extreme != 0 || interp_assume(interp, node->parts[0], true);
  if (can_be) yes = interp_evaluate(interp, node->parts[1]);
  struct state *after = interp_save(interp);
  interp_restore(interp, before, count);
  bool can_fail = extreme != 0 || interp_assume(interp, node->parts[0], false);
  if (can_fail) no = interp_evaluate(interp, node->parts[2]);
  interp->guards = guards;
  interp_join(interp, after, count, condition);
  /* What was assumed in the branches is forgotten after them. */
  for (int i = 0; i < count; i++)
    if (before[i].value.kind == VALUE_INTEGER) interp->states[i].value = before[i].value;
  interp_drop(interp, after);
  interp_drop(interp, before);
  struct value value = extreme != 0 && yes.kind == VALUE_INTEGER && no.kind == VALUE_INTEGER
                           ? extreme_of(yes, no, extreme == 1)
                           : value_join(yes, no);
  int64_t most;
  if (value.kind == VALUE_INTEGER && find_clamp(interp, node, &most)) {
    value.low = 0;
    value.high = most;
    value.form = NULL;
    value.blame |= BLAME_ALWAYS;
  }
  value.origin |= condition.origin;
  value.loops |= condition.loops;
  if (extreme == 0) value.blame |= interp_guard(condition);
  return value;
}

static struct value evaluate_unary(struct interp *interp, struct syntax *node) {
  if (node->operation == OPERATOR_ADDRESS) {
    struct syntax *operand = syntax_bare(node->parts[0]);
    if (operand->kind == SYNTAX_FUNCTION) return value_number(0);
    return interp_lvalue(interp, node->parts[0]).at;
  }
  if (node->operation == OPERATOR_DEREFERENCE) return interp_load(interp, interp_lvalue(interp, node), node);
  struct value value = interp_evaluate(interp, node->parts[0]);
  if (node->operation == OPERATOR_MINUS && value.kind == VALUE_INTEGER)
    return evaluate_arithmetic(interp, node, OPERATOR_SUBTRACT, value_integer(0, 0), value);
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

static struct value evaluate_assign(struct interp *interp, struct syntax *node) {
  struct value value = interp_evaluate(interp, node->parts[1]);
  struct lvalue lvalue = interp_lvalue(interp, node->parts[0]);
  if (node->operation != OPERATOR_NONE) {
    struct value old = interp_load(interp, lvalue, node->parts[0]);
    value = evaluate_arithmetic(interp, node, node->operation, old, value);
  }
  interp_store(interp, lvalue, value, node->parts[0]);
  return value;
}

static struct value evaluate_increment(struct interp *interp, struct syntax *node) {
  struct lvalue lvalue = interp_lvalue(interp, node->parts[0]);
  struct content before = interp_content_before(interp, node, lvalue);
  struct value old = interp_load(interp, lvalue, node->parts[0]);
  struct value value =
      evaluate_arithmetic(interp, node, OPERATOR_ADD, old, value_integer(node->integer, node->integer));
  interp_store(interp, lvalue, value, node->parts[0]);
  interp_count(interp, node, lvalue, before, &old);
  return node->prefix ? value : old;
}

static struct value evaluate_cast(struct interp *interp, struct syntax *node) {
  struct value value = interp_evaluate(interp, node->parts[0]);
  if (node->type->kind == TYPE_VOID || node->type->kind == TYPE_FUNCTION) return value;
  if (node->type->kind == TYPE_POINTER && value.kind == VALUE_POINTER && value.object == interp->arena_object)
    if (interp_set_arena(interp, node->type->element, node)) value = interp_address(interp, interp->arena_object);
  return value_convert(value, node->type);
}

/* Where the parts come from, all together. */
static unsigned evaluate_parts(struct interp *interp, struct syntax *node) {
  unsigned origin = 0;
  for (int i = 0; i < node->n_parts; i++)
    if (node->parts[i] != NULL && node->parts[i]->kind != SYNTAX_DESIGNATOR)
      origin |= interp_evaluate(interp, node->parts[i]).origin;
  return origin;
}

struct value interp_evaluate(struct interp *interp, struct syntax *node) {
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
      return interp->states[interp_variable(interp, node->variable)].value;
    return interp_load(interp, interp_lvalue(interp, node), node);
  case SYNTAX_MEMBER:
  case SYNTAX_INDEX:
    return interp_load(interp, interp_lvalue(interp, node), node);
  case SYNTAX_UNARY:
    return evaluate_unary(interp, node);
  case SYNTAX_INCREMENT:
    return evaluate_increment(interp, node);
  case SYNTAX_BINARY: {
    if (node->operation == OPERATOR_AND || node->operation == OPERATOR_OR) return evaluate_logic(interp, node);
    struct value a = interp_evaluate(interp, node->parts[0]), b = interp_evaluate(interp, node->parts[1]);
    if (node->operation == OPERATOR_REMAINDER && is_aligned_to(interp, node->parts[0], b)) return value_integer(0, 0);
    return node->operation == OPERATOR_COMMA ? b : evaluate_arithmetic(interp, node, node->operation, a, b);
  }
  case SYNTAX_ASSIGN:
    return evaluate_assign(interp, node);
  case SYNTAX_SELECT:
    return evaluate_select(interp, node);
  case SYNTAX_CAST:
    return evaluate_cast(interp, node);
  case SYNTAX_CALL:
    return interp_call(interp, node);
  case SYNTAX_COMPOUND_LITERAL:
    if (node->type->kind == TYPE_RECORD && node->n_parts == 1) return interp_evaluate(interp, node->parts[0]);
    return value_of_type(node->type, evaluate_parts(interp, node));
  case SYNTAX_LIST:
    if (node->type->kind == TYPE_RECORD) return interp_record(interp, node);
    if (node->type->kind == TYPE_ARRAY && node->type->element->kind == TYPE_POINTER)
      return interp_pointers(interp, node);
    return value_of_type(node->type, evaluate_parts(interp, node));
  case SYNTAX_DESIGNATED:
    return value_of_type(node->type, evaluate_parts(interp, node));
  case SYNTAX_STATEMENTS:
    interp_statement(interp, node->parts[0]);
    return value_of_type(node->type, ORIGIN_DATA);
  case SYNTAX_FUNCTION:
    return value_number(0);
  default:
    return value_of_type(node->type, evaluate_parts(interp, node) | ORIGIN_DATA);
  }
}
