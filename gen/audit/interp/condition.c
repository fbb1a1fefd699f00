/* Conditions: the values of a variable where one is true. */
#include "gen/audit/interp/interp.h"

static enum operator_kind negated(enum operator_kind operation) {
  switch (operation) {
  case OPERATOR_LESS:
    return OPERATOR_GREATER_EQUAL;
  case OPERATOR_GREATER:
    return OPERATOR_LESS_EQUAL;
  case OPERATOR_LESS_EQUAL:
    return OPERATOR_GREATER;
  case OPERATOR_GREATER_EQUAL:
    return OPERATOR_LESS;
  case OPERATOR_EQUAL:
    return OPERATOR_NOT_EQUAL;
  default:
    return OPERATOR_EQUAL;
  }
}

/* What is read under a condition is not read here: an expression is evaluated where it has variables alone. */
static bool has_variables_alone(const struct syntax *node) {
  if (node->kind == SYNTAX_CAST) return has_variables_alone(node->parts[0]);
  if (node->kind == SYNTAX_BINARY && node->operation == OPERATOR_ADD)
    return has_variables_alone(node->parts[0]) && has_variables_alone(node->parts[1]);
  return node->kind == SYNTAX_VARIABLE || node->kind == SYNTAX_INTEGER;
}

/* Whether all numbers of the range are of an integer type; VALUE_MAX may be any unsigned number from there on. */
static bool fits(struct value value, const struct type *type) {
  const int bits = (int)type->size * 8 - (type->is_signed ? 1 : 0);
  const int64_t end = bits < 63 ? INT64_C(1) << bits : VALUE_MAX;
  return value.kind == VALUE_INTEGER && value.low >= 0 && (value.high < end || bits > 63);
}

static bool keeps_value(struct interp *interp, const struct syntax *cast) {
  const struct type *to = cast->type, *from = cast->parts[0]->type;
  if (to->kind == TYPE_POINTER) return from->kind == TYPE_POINTER || from->kind == TYPE_ARRAY;
  if (to->kind == TYPE_REAL && from->kind == TYPE_REAL) return to->size >= from->size;
  if (to->kind != TYPE_INTEGER || from->kind != TYPE_INTEGER || to->is_bool) return false;
  if (to->is_signed == from->is_signed && to->size >= from->size) return true;
  if (to->is_signed && to->size > from->size) return true;
  return has_variables_alone(cast->parts[0]) && fits(interp_evaluate(interp, cast->parts[0]), to);
}

struct syntax *interp_unconverted(struct interp *interp, struct syntax *node) {
  while (node->kind == SYNTAX_CAST && keeps_value(interp, node)) node = node->parts[0];
  return node;
}

/* Whether v + constant is their sum: signed ones have no other (no-overflow), but unsigned ones begin at 0 again. */
static bool is_sum(struct interp *interp, const struct syntax *node, int64_t added) {
  if (node->type->kind != TYPE_INTEGER || node->type->is_signed) return true;
  struct value sum = interp_evaluate(interp, node->parts[0]);
  sum.high = bounded_add(sum.high, added);
  return added >= 0 && sum.high < VALUE_MAX && fits(sum, node->type);
}

/* The variable of v or v + constant, whose value is followed; NULL for another expression. */
static struct state *variable_of(struct interp *interp, struct syntax *node, int64_t *added) {
  node = interp_unconverted(interp, node);
  *added = 0;
  if (node->kind == SYNTAX_BINARY && node->operation == OPERATOR_ADD &&
      syntax_bare(node->parts[1])->kind == SYNTAX_INTEGER) {
    *added = syntax_bare(node->parts[1])->integer;
    if (!has_variables_alone(node) || !is_sum(interp, node, *added)) return NULL;
    node = interp_unconverted(interp, node->parts[0]);
  }
  if (node->kind != SYNTAX_VARIABLE || node->variable->type->kind != TYPE_INTEGER) return NULL;
  int object = interp_variable(interp, node->variable);
  if (interp->objects[object].kind == OBJECT_STATIC) return NULL;
  struct state *state = &interp->states[object];
  return state->value.kind == VALUE_INTEGER ? state : NULL;
}

/* What a condition compares: of an assignment the variable, which has its value. */
static struct syntax *compared(struct interp *interp, struct syntax *node) {
  struct syntax *bare = interp_unconverted(interp, node);
  bool assigns = bare->kind == SYNTAX_ASSIGN && bare->operation == OPERATOR_NONE;
  return assigns ? bare->parts[0] : node;
}

/* The last of low, low + step, ... up to most, which is not below low. Distances of two numbers fit without a sign. */
static int64_t step_down(int64_t low, int64_t most, int64_t step) {
  return most - (int64_t)(((uint64_t)most - (uint64_t)low) % (uint64_t)step);
}

/* The first of low, low + step, ... from least on, which is not below low. */
static int64_t step_up(int64_t low, int64_t least, int64_t step) {
  int64_t beyond = (int64_t)(((uint64_t)least - (uint64_t)low) % (uint64_t)step);
  return bounded_add(least, beyond == 0 ? 0 : step - beyond);
}

/* Narrows `subject` by subject operator other. */
static bool narrow(struct interp *interp, struct syntax *subject, enum operator_kind operation, struct value other) {
  int64_t added;
  struct state *state = variable_of(interp, subject, &added);
  if (state == NULL || other.kind != VALUE_INTEGER) return true;
  struct value *value = &state->value;
  int64_t low = value->low, high = value->high, step = value->step > 1 ? value->step : 1;
  int64_t most = bounded_add(other.high, -added), least = bounded_add(other.low, -added);
  if (operation == OPERATOR_LESS) most = bounded_add(most, -1);
  if (operation == OPERATOR_GREATER) least = bounded_add(least, 1);
  bool upper = operation == OPERATOR_LESS || operation == OPERATOR_LESS_EQUAL || operation == OPERATOR_EQUAL;
  int64_t end;
  if (operation == OPERATOR_NOT_EQUAL && other.low == other.high && !__builtin_sub_overflow(other.low, added, &end)) {
    if (low == end && low < high) low = bounded_add(low, step);
    if (high == end && low < high) high = step_down(low, high - 1, step);
  }
  bool lower = operation == OPERATOR_GREATER || operation == OPERATOR_GREATER_EQUAL || operation == OPERATOR_EQUAL;
  if (upper && most < high) high = most < low ? most : step_down(low, most, step);
  if (lower && least > low) low = least > high ? least : step_up(low, least, step);
  if (low > high) return false;
  if (value->low != low || value->high != high) {
    value->loops |= other.loops;
    value->blame |= other.loops;
  }
  value->low = low;
  value->high = high;
  return true;
}

/* Whether an expression is known not to be `truth`. */
static bool is_not(struct interp *interp, struct syntax *condition, bool truth) {
  struct value value = interp_evaluate(interp, condition);
  if (value.kind != VALUE_INTEGER) return false;
  return truth ? value.low == 0 && value.high == 0 : value.low > 0 || value.high < 0;
}

bool interp_assume(struct interp *interp, struct syntax *condition, bool truth) {
  condition = syntax_bare(condition);
  if (condition->kind == SYNTAX_UNARY && condition->operation == OPERATOR_NOT)
    return interp_assume(interp, condition->parts[0], !truth);
  if (condition->kind != SYNTAX_BINARY) return true;
  enum operator_kind operation = condition->operation;
  if (operation == (truth ? OPERATOR_AND : OPERATOR_OR))
    return interp_assume(interp, condition->parts[0], truth) && interp_assume(interp, condition->parts[1], truth);
  if (operation == (truth ? OPERATOR_OR : OPERATOR_AND)) /* a || b where a does not hold */
    return !is_not(interp, condition->parts[0], truth) || interp_assume(interp, condition->parts[1], truth);
  bool compares = operation >= OPERATOR_LESS && operation <= OPERATOR_NOT_EQUAL;
  if (!compares || condition->parts[0]->type->kind != TYPE_INTEGER) return true;
  struct syntax *first = compared(interp, condition->parts[0]), *second = compared(interp, condition->parts[1]);
  int64_t unused;
  bool left = variable_of(interp, first, &unused) != NULL;
  bool right = variable_of(interp, second, &unused) != NULL;
  if (!left && !right) return true;
  if (!truth) operation = negated(operation);
  struct value a = interp_evaluate(interp, first), b = interp_evaluate(interp, second);
  return (!left || narrow(interp, first, operation, b)) &&
         (!right || narrow(interp, second, operator_mirrored(operation), a));
}
