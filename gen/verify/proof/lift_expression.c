/* Expressions as terms. Conversions between floating types are the number itself: a term is without roundings. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gen/verify/proof/lift_private.h"

static struct lifted number(const struct term *term) {
  return (struct lifted){false, 0, term};
}

static struct lifted failed(struct lift *lift, const char *why) {
  lift_fail(lift, why);
  return number(term_number(lift->terms, 0));
}

const struct term *lift_number(struct lift *lift, const struct syntax *node) {
  const struct lifted value = lift_value(lift, node);
  if (value.is_address) lift_fail(lift, "it computes with an address");
  return value.is_address ? term_number(lift->terms, 0) : value.term;
}

/* The number that a float stands for: the shortest decimal that becomes it. */
static double decimal_of(double x) {
  char text[40];
  for (int digits = 1; digits <= 9; digits++) {
    snprintf(text, sizeof text, "%.*g", digits, x);
    if (strtof(text, NULL) == (float)x) return strtod(text, NULL);
  }
  return x;
}

/* ---- Constants of the program's text ---- */

/* The part of a list at a byte; NULL: there is none. */
static const struct syntax *part_at(const struct syntax *list, const struct type *type, int64_t *byte) {
  if (type->kind == TYPE_ARRAY) {
    const int64_t i = *byte / type->element->size;
    *byte %= type->element->size;
    return i < list->n_parts ? list->parts[i] : NULL;
  }
  for (int i = type->n_members - 1; i >= 0; i--)
    if (type->members[i].offset >= 0 && type->members[i].offset <= *byte) {
      *byte -= type->members[i].offset;
      return i < list->n_parts ? list->parts[i] : NULL;
    }
  return NULL;
}

static const struct type *type_at(const struct type *type, int64_t byte) {
  if (type->kind == TYPE_ARRAY) return type->element;
  for (int i = type->n_members - 1; i >= 0; i--)
    if (type->members[i].offset >= 0 && type->members[i].offset <= byte) return type->members[i].type;
  return NULL;
}

/* The constant at a byte of a variable, whose initial value is in the text. */
static const struct term *constant_at(struct lift *lift, const struct variable *variable, const struct term *at) {
  const struct syntax *value = variable->initial;
  const struct type *type = variable->type;
  double x;
  if (!variable->is_constant && strstr(type->name, "const ") == NULL) lift_fail(lift, "it reads what may change");
  if (!term_is_number(at, &x) || value == NULL) {
    lift_fail(lift, "it reads a table");
    return at;
  }
  int64_t byte = (int64_t)x;
  while (value != NULL && value->kind == SYNTAX_LIST && type != NULL) {
    const struct type *inner = type_at(type, byte);
    value = part_at(value, type, &byte);
    type = inner;
  }
  if (value == NULL || value->kind == SYNTAX_DESIGNATED || value->kind == SYNTAX_LIST) {
    lift_fail(lift, "it reads a table");
    return at;
  }
  return lift_number(lift, value);
}

/* ---- Places ---- */

/* The memory of a static variable, a table or space to compute in, made where it is first used. */
static int static_memory(struct lift *lift, const struct variable *variable) {
  for (int i = 1; i <= lift->n_memories; i++)
    if (lift->statics[i] == variable) return i;
  const int memory = lift_memory(lift, false);
  lift->statics[memory] = variable;
  lift->now.memories[memory].depth = 0;
  return memory;
}

static struct lifted place_of_variable(struct lift *lift, const struct variable *variable) {
  const struct binding *binding = lift_binding(lift, variable);
  const struct term *zero = term_number(lift->terms, 0);
  if (binding == NULL && variable->is_static) return (struct lifted){true, static_memory(lift, variable), zero};
  if (binding == NULL) return failed(lift, "it has a variable that is not followed");
  return (struct lifted){true, binding->memory, binding->byte != NULL ? binding->byte : zero};
}

static struct lifted moved(struct lift *lift, struct lifted at, const struct term *by, int64_t size) {
  at.term = term_add(lift->terms, at.term, term_scale(lift->terms, by, (double)size));
  return at;
}

struct lifted lift_place(struct lift *lift, const struct syntax *node) {
  if (lift_has_failed(lift)) return number(term_number(lift->terms, 0));
  if (node->kind == SYNTAX_VARIABLE) return place_of_variable(lift, node->variable);
  if (node->kind == SYNTAX_CAST) return lift_place(lift, node->parts[0]);
  if (node->kind == SYNTAX_UNARY && node->operation == OPERATOR_DEREFERENCE) return lift_value(lift, node->parts[0]);
  if (node->kind == SYNTAX_INDEX) {
    const struct lifted at = lift_value(lift, node->parts[0]);
    return at.is_address ? moved(lift, at, lift_number(lift, node->parts[1]), node->type->size)
                         : failed(lift, "it has an index of what is no array");
  }
  if (node->kind == SYNTAX_MEMBER) {
    const struct type *record = node->parts[0]->type;
    const struct lifted at = lift_place(lift, node->parts[0]);
    if (record->kind == TYPE_RECORD && at.is_address && record->members[node->member].offset >= 0)
      return moved(lift, at, term_number(lift->terms, 1), record->members[node->member].offset);
  }
  return failed(lift, "it has a place that is not followed");
}

static struct lifted load(struct lift *lift, const struct syntax *node) {
  const struct type *type = node->type;
  const struct lifted at = lift_place(lift, node);
  if (lift_has_failed(lift)) return at;
  if (type->kind == TYPE_ARRAY || type->kind == TYPE_RECORD) return at;
  if (node->kind == SYNTAX_VARIABLE && type->kind == TYPE_POINTER) return at;
  if (type->kind != TYPE_REAL && type->kind != TYPE_INTEGER) return failed(lift, "it has numbers of another kind");
  const struct variable *constant = lift->statics[at.memory];
  if (constant != NULL && constant->initial != NULL) return number(constant_at(lift, constant, at.term));
  return number(lift_read(lift, at.memory, at.term));
}

/* ---- Operators ---- */

static const struct term *negated(struct lift *lift, const struct term *condition) {
  return term_subtract(lift->terms, term_number(lift->terms, 1), condition);
}

static bool is_condition(const struct syntax *node) {
  const bool compares =
      node->kind == SYNTAX_BINARY && node->operation >= OPERATOR_LESS && node->operation <= OPERATOR_NOT_EQUAL;
  return compares ||
         (node->kind == SYNTAX_BINARY && (node->operation == OPERATOR_AND || node->operation == OPERATOR_OR)) ||
         (node->kind == SYNTAX_UNARY && node->operation == OPERATOR_NOT);
}

const struct term *lift_truth(struct lift *lift, const struct syntax *node) {
  const struct term *value = lift_number(lift, node);
  while (node->kind == SYNTAX_CAST) node = node->parts[0];
  return is_condition(node) || node->type->is_bool ? value : negated(lift, term_zero(lift->terms, value));
}

static const struct term *compared(struct lift *lift, enum operator_kind operation, const struct term *a,
                                   const struct term *b) {
  struct terms *terms = lift->terms;
  const struct term *less = term_subtract(terms, b, a), *more = term_subtract(terms, a, b);
  if (operation == OPERATOR_LESS) return term_positive(terms, less);
  if (operation == OPERATOR_GREATER) return term_positive(terms, more);
  if (operation == OPERATOR_LESS_EQUAL) return negated(lift, term_positive(terms, more));
  if (operation == OPERATOR_GREATER_EQUAL) return negated(lift, term_positive(terms, less));
  return operation == OPERATOR_EQUAL ? term_zero(terms, more) : negated(lift, term_zero(terms, more));
}

/* Of whole numbers, towards 0. */
static const struct term *divided(struct lift *lift, enum operator_kind operation, const struct term *a,
                                  const struct term *b) {
  const struct term *quotient, *rest;
  double low, high, by;
  term_range(a, &low, &high);
  if (!term_is_number(b, &by) || by <= 0) {
    lift_fail(lift, "it divides whole numbers");
    return a;
  }
  if (low < 0 || !term_divided(lift->terms, a, by, &quotient, &rest)) {
    quotient = term_call(lift->terms, TERM_WHOLE, term_scale(lift->terms, a, 1 / by));
    rest = term_subtract(lift->terms, a, term_scale(lift->terms, quotient, by));
  }
  return operation == OPERATOR_DIVIDE ? quotient : rest;
}

/* Whether whole numbers of a range are those of a type. */
static bool fits_type(const struct type *type, double low, double high) {
  const double size = ldexp(1, (int)type->size * 8 - (type->is_signed ? 1 : 0));
  return low >= (type->is_signed ? -size : 0) && high < size;
}

static const struct term *binary(struct lift *lift, const struct syntax *node, const struct term *a,
                                 const struct term *b) {
  struct terms *terms = lift->terms;
  const bool whole = node->type->kind == TYPE_INTEGER;
  const enum operator_kind operation = node->operation;
  const struct term *result = a;
  double low, high;
  if (operation >= OPERATOR_LESS && operation <= OPERATOR_NOT_EQUAL) return compared(lift, operation, a, b);
  if (operation == OPERATOR_ADD)
    result = term_add(terms, a, b);
  else if (operation == OPERATOR_SUBTRACT)
    result = term_subtract(terms, a, b);
  else if (operation == OPERATOR_MULTIPLY)
    result = term_multiply(terms, a, b);
  else if (operation == OPERATOR_DIVIDE && !whole)
    result = term_divide(terms, a, b);
  else if (operation == OPERATOR_DIVIDE || operation == OPERATOR_REMAINDER)
    result = divided(lift, operation, a, b);
  else
    lift_fail(lift, "it has an operator that is not followed");
  term_range(result, &low, &high);
  if (whole && isfinite(low) && isfinite(high) && !fits_type(node->type, low, high))
    lift_fail(lift, "a whole number may be out of its range");
  return result;
}

static struct lifted value_of_binary(struct lift *lift, const struct syntax *node) {
  if (node->operation == OPERATOR_AND || node->operation == OPERATOR_OR) {
    const struct term *a = lift_truth(lift, node->parts[0]), *b = lift_truth(lift, node->parts[1]);
    const struct term *both = term_multiply(lift->terms, a, b);
    if (node->operation == OPERATOR_AND) return number(both);
    return number(term_subtract(lift->terms, term_add(lift->terms, a, b), both));
  }
  const struct lifted a = lift_value(lift, node->parts[0]), b = lift_value(lift, node->parts[1]);
  if (!a.is_address && !b.is_address) return number(binary(lift, node, a.term, b.term));
  const struct type *element = node->type->element;
  if (a.is_address && !b.is_address && node->operation == OPERATOR_ADD && element != NULL)
    return moved(lift, a, b.term, element->size);
  return failed(lift, "it computes with an address");
}

/* ---- Writes ---- */

static struct lifted store(struct lift *lift, const struct syntax *target, const struct term *value) {
  const struct type *type = target->type;
  const struct lifted at = lift_place(lift, target);
  if (lift->statics[at.memory] != NULL || (type->kind != TYPE_REAL && type->kind != TYPE_INTEGER))
    return failed(lift, "it writes what is not followed");
  if (!lift_has_failed(lift)) lift_write(lift, at.memory, at.term, value);
  return number(value);
}

static struct lifted assign(struct lift *lift, const struct syntax *node) {
  const struct term *value = lift_number(lift, node->parts[1]);
  if (node->operation == OPERATOR_NONE) return store(lift, node->parts[0], value);
  const struct term *before = lift_number(lift, node->parts[0]);
  if (node->parts[0]->type->kind == TYPE_INTEGER && node->parts[1]->type->kind != TYPE_INTEGER)
    return failed(lift, "it cuts off a number");
  if (lift_has_failed(lift)) return number(value);
  return store(lift, node->parts[0], binary(lift, node, before, value));
}

static struct lifted increment(struct lift *lift, const struct syntax *node) {
  const struct term *before = lift_number(lift, node->parts[0]);
  const struct term *after = term_add(lift->terms, before, term_number(lift->terms, (double)node->integer));
  store(lift, node->parts[0], after);
  return number(node->prefix ? after : before);
}

/* ---- All ---- */

/* A whole number of the data becomes an index of more bits: it is not below 0, as is assumed. */
static bool keeps_number(const struct type *type, const struct type *from, const struct term *value) {
  double low, high;
  term_range(value, &low, &high);
  if (isfinite(low) && isfinite(high)) return fits_type(type, low, high);
  return type->size > from->size || (type->size == from->size && type->is_signed == from->is_signed);
}

static const struct type *innermost(const struct type *type) {
  while (type != NULL && (type->kind == TYPE_ARRAY || type->kind == TYPE_POINTER)) type = type->element;
  return type;
}

/* Whether an address that becomes one of another type is still one of the same numbers, or one by which nothing is read
 * or written. */
static bool keeps_numbers(const struct type *type, const struct type *from) {
  type = innermost(type);
  from = innermost(from);
  if (type == NULL || from == NULL || type->kind == TYPE_VOID) return true;
  return type->kind == from->kind && type->size == from->size && type->is_signed == from->is_signed;
}

static struct lifted converted(struct lift *lift, const struct syntax *node) {
  const struct lifted value = lift_value(lift, node->parts[0]);
  const struct type *from = node->parts[0]->type;
  if (lift_has_failed(lift)) return value;
  if (node->type->kind == TYPE_REAL && node->type->size < 4)
    return failed(lift, "it rounds to fewer bits than float has");
  if (!value.is_address && node->type->kind == TYPE_INTEGER && from->kind == TYPE_INTEGER && !node->type->is_bool &&
      !keeps_number(node->type, from, value.term))
    return failed(lift, "it cuts off a whole number");
  if (!value.is_address && node->type->kind == TYPE_INTEGER && from->kind == TYPE_REAL)
    return number(term_call(lift->terms, TERM_WHOLE, value.term));
  if (!value.is_address && node->type->is_bool && !from->is_bool && !is_condition(syntax_bare(node->parts[0])))
    return number(negated(lift, term_zero(lift->terms, value.term)));
  const bool numbers = node->type->kind == TYPE_REAL || node->type->kind == TYPE_INTEGER;
  if (value.is_address && !numbers && !keeps_numbers(node->type, from))
    return failed(lift, "it takes numbers of one type as those of another one");
  if (value.is_address == numbers && node->type->kind != TYPE_VOID) return failed(lift, "it converts an address");
  return value;
}

static struct lifted chosen(struct lift *lift, const struct syntax *node) {
  const struct syntax *condition = syntax_bare(node->parts[0]);
  const struct term *which = lift_truth(lift, node->parts[0]);
  double x;
  if (term_is_number(which, &x)) return lift_value(lift, node->parts[x != 0 ? 1 : 2]);
  const struct term *a = lift_number(lift, node->parts[1]), *b = lift_number(lift, node->parts[2]);
  const bool more = condition->kind == SYNTAX_BINARY &&
                    (condition->operation == OPERATOR_GREATER || condition->operation == OPERATOR_LESS);
  if (more && !lift_has_failed(lift)) { /* of x > y ? x : y, the sign of 0 does not matter */
    const struct term *left = lift_number(lift, condition->parts[0]), *right = lift_number(lift, condition->parts[1]);
    const bool greater = condition->operation == OPERATOR_GREATER;
    if (a == (greater ? left : right) && b == (greater ? right : left)) return number(term_larger(lift->terms, a, b));
    if (a == (greater ? right : left) && b == (greater ? left : right))
      return number(term_subtract(lift->terms, term_add(lift->terms, a, b), term_larger(lift->terms, a, b)));
  }
  return number(term_select(lift->terms, which, a, b));
}

static struct lifted unary(struct lift *lift, const struct syntax *node) {
  if (node->operation == OPERATOR_DEREFERENCE) return load(lift, node);
  if (node->operation == OPERATOR_ADDRESS) return lift_place(lift, node->parts[0]);
  if (node->operation == OPERATOR_NOT) return number(negated(lift, lift_truth(lift, node->parts[0])));
  const struct term *value = lift_number(lift, node->parts[0]);
  if (node->operation == OPERATOR_MINUS) return number(term_scale(lift->terms, value, -1));
  return node->operation == OPERATOR_PLUS ? number(value) : failed(lift, "it has an operator that is not followed");
}

struct lifted lift_value(struct lift *lift, const struct syntax *node) {
  if (lift_has_failed(lift)) return number(term_number(lift->terms, 0));
  switch (node->kind) {
  case SYNTAX_INTEGER:
    return number(term_number(lift->terms, (double)node->integer));
  case SYNTAX_REAL:
    if (!isfinite(node->real)) return failed(lift, "it has an infinite number");
    return number(term_number(lift->terms, node->type->size == 4 ? decimal_of(node->real) : node->real));
  case SYNTAX_VARIABLE:
  case SYNTAX_MEMBER:
  case SYNTAX_INDEX:
    return load(lift, node);
  case SYNTAX_UNARY:
    return unary(lift, node);
  case SYNTAX_BINARY:
    return value_of_binary(lift, node);
  case SYNTAX_ASSIGN:
    return assign(lift, node);
  case SYNTAX_INCREMENT:
    return increment(lift, node);
  case SYNTAX_SELECT:
    return chosen(lift, node);
  case SYNTAX_CAST:
    return converted(lift, node);
  case SYNTAX_CALL:
    return lift_call(lift, node);
  default:
    return failed(lift, "it has an expression that is not followed");
  }
}
