/* Arithmetic on known numbers, by C's rules; what C leaves undefined is an error. */
#include "gen/model/evaluate.h"

#include <math.h>

/* ---- The usual arithmetic conversions ---- */

static const struct type *promote(const struct type *type) {
  return ctype_of(type) == CTYPE_INTEGER && ctype_bits(type) < 32 ? &type_int : type;
}

static const struct type *common_type(const struct type *a, const struct type *b) {
  if (ctype_of(a) == CTYPE_REAL || ctype_of(b) == CTYPE_REAL) {
    bool wide =
        (ctype_of(a) == CTYPE_REAL && ctype_bits(a) == 64) || (ctype_of(b) == CTYPE_REAL && ctype_bits(b) == 64);
    return wide ? &type_double : &type_float;
  }
  a = promote(a);
  b = promote(b);
  if (ctype_bits(a) != ctype_bits(b)) return ctype_bits(a) > ctype_bits(b) ? a : b;
  return a->is_signed ? b : a;
}

/* ---- Reals ---- */

static struct cvalue real_result(double value, const struct type *type) {
  return (struct cvalue){.kind = CVALUE_REAL, .type = type, .real = ctype_bits(type) == 32 ? (float)value : value};
}

static struct cvalue real_operation(struct evaluator *evaluator, enum operator_kind operation, double a, double b,
                                    const struct type *type, struct location where) {
  switch (operation) {
  case OPERATOR_MULTIPLY:
    return real_result(a * b, type);
  case OPERATOR_ADD:
    return real_result(a + b, type);
  case OPERATOR_SUBTRACT:
    return real_result(a - b, type);
  case OPERATOR_DIVIDE:
    if (b == 0) evaluate_fail(evaluator, where, NULL, "division of %g by zero", a);
    return real_result(a / b, type);
  case OPERATOR_LESS:
    return cvalue_integer(a < b);
  case OPERATOR_GREATER:
    return cvalue_integer(a > b);
  case OPERATOR_LESS_EQUAL:
    return cvalue_integer(a <= b);
  case OPERATOR_GREATER_EQUAL:
    return cvalue_integer(a >= b);
  case OPERATOR_EQUAL:
    return cvalue_integer(a == b);
  case OPERATOR_NOT_EQUAL:
    return cvalue_integer(a != b);
  default:
    evaluate_fail(evaluator, where, NULL, "this operator needs whole numbers");
  }
}

/* ---- Unsigned integers: modulo 2^bits ---- */

static struct cvalue unsigned_operation(struct evaluator *evaluator, enum operator_kind operation, uint64_t a,
                                        uint64_t b, const struct type *type, struct location where) {
  uint64_t value = 0;
  if (b == 0 && (operation == OPERATOR_DIVIDE || operation == OPERATOR_REMAINDER))
    evaluate_fail(evaluator, where, NULL, "division of %llu by zero", (unsigned long long)a);
  switch (operation) {
  case OPERATOR_MULTIPLY:
    value = a * b;
    break;
  case OPERATOR_DIVIDE:
    value = a / b;
    break;
  case OPERATOR_REMAINDER:
    value = a % b;
    break;
  case OPERATOR_ADD:
    value = a + b;
    break;
  case OPERATOR_SUBTRACT:
    value = a - b;
    break;
  case OPERATOR_LESS:
    return cvalue_integer(a < b);
  case OPERATOR_GREATER:
    return cvalue_integer(a > b);
  case OPERATOR_LESS_EQUAL:
    return cvalue_integer(a <= b);
  case OPERATOR_GREATER_EQUAL:
    return cvalue_integer(a >= b);
  case OPERATOR_EQUAL:
    return cvalue_integer(a == b);
  case OPERATOR_NOT_EQUAL:
    return cvalue_integer(a != b);
  case OPERATOR_BIT_AND:
    value = a & b;
    break;
  case OPERATOR_BIT_XOR:
    value = a ^ b;
    break;
  case OPERATOR_BIT_OR:
    value = a | b;
    break;
  default:
    evaluate_fail(evaluator, where, NULL, "a model cannot use this operator");
  }
  if (ctype_bits(type) < 64) value &= (UINT64_C(1) << ctype_bits(type)) - 1;
  return (struct cvalue){.kind = CVALUE_INTEGER, .type = type, .integer = (int64_t)value};
}

/* ---- Signed integers: overflow is an error ---- */

static bool signed_value(enum operator_kind operation, int64_t a, int64_t b, int64_t *value) {
  switch (operation) {
  case OPERATOR_MULTIPLY:
    return !__builtin_mul_overflow(a, b, value);
  case OPERATOR_ADD:
    return !__builtin_add_overflow(a, b, value);
  case OPERATOR_SUBTRACT:
    return !__builtin_sub_overflow(a, b, value);
  case OPERATOR_DIVIDE:
  case OPERATOR_REMAINDER:
    if (a == INT64_MIN && b == -1) return false;
    *value = operation == OPERATOR_DIVIDE ? a / b : a % b;
    return true;
  case OPERATOR_LESS:
    *value = a < b;
    return true;
  case OPERATOR_GREATER:
    *value = a > b;
    return true;
  case OPERATOR_LESS_EQUAL:
    *value = a <= b;
    return true;
  case OPERATOR_GREATER_EQUAL:
    *value = a >= b;
    return true;
  case OPERATOR_EQUAL:
    *value = a == b;
    return true;
  case OPERATOR_NOT_EQUAL:
    *value = a != b;
    return true;
  case OPERATOR_BIT_AND:
    *value = a & b;
    return true;
  case OPERATOR_BIT_XOR:
    *value = a ^ b;
    return true;
  case OPERATOR_BIT_OR:
    *value = a | b;
    return true;
  default:
    return false;
  }
}

static struct cvalue signed_operation(struct evaluator *evaluator, enum operator_kind operation, int64_t a, int64_t b,
                                      const struct type *type, struct location where) {
  if (b == 0 && (operation == OPERATOR_DIVIDE || operation == OPERATOR_REMAINDER))
    evaluate_fail(evaluator, where, NULL, "division of %lld by zero", (long long)a);
  int64_t value = 0;
  bool fits = signed_value(operation, a, b, &value);
  int64_t limit = ctype_bits(type) < 64 ? (INT64_C(1) << (ctype_bits(type) - 1)) - 1 : INT64_MAX;
  if (!fits || value > limit || value < -limit - 1)
    evaluate_fail(evaluator, where, "compute in long, or in double",
                  "signed overflow: the result of %lld and %lld does not fit into '%s'", (long long)a, (long long)b,
                  type->name);
  bool comparison = operation >= OPERATOR_LESS && operation <= OPERATOR_NOT_EQUAL;
  return (struct cvalue){.kind = CVALUE_INTEGER, .type = comparison ? &type_int : type, .integer = value};
}

static struct cvalue shift(struct evaluator *evaluator, enum operator_kind operation, struct cvalue a, struct cvalue b,
                           struct location where) {
  const struct type *type = promote(a.type);
  bool negative = type->is_signed && a.integer < 0;
  if (b.integer < 0 || b.integer >= ctype_bits(type) || (negative && operation == OPERATOR_LEFT))
    evaluate_fail(evaluator, where, NULL, "shift of %s by %s bits", cvalue_text(evaluator->arena, a),
                  cvalue_text(evaluator->arena, b));
  uint64_t value = (uint64_t)a.integer;
  if (operation == OPERATOR_RIGHT) {
    value = negative ? ~(~value >> b.integer) : value >> b.integer; /* as every compiler: the sign fills */
  } else {
    if (type->is_signed && value >> (ctype_bits(type) - 1 - b.integer) != 0)
      evaluate_fail(evaluator, where, "compute in unsigned long", "signed overflow: %s << %s does not fit into '%s'",
                    cvalue_text(evaluator->arena, a), cvalue_text(evaluator->arena, b), type->name);
    value <<= b.integer;
    if (ctype_bits(type) < 64) value &= (UINT64_C(1) << ctype_bits(type)) - 1;
  }
  return (struct cvalue){.kind = CVALUE_INTEGER, .type = type, .integer = (int64_t)value};
}

/* ---- All ---- */

static void need_number(struct evaluator *evaluator, struct cvalue value, struct location where) {
  if (value.kind == CVALUE_INTEGER || value.kind == CVALUE_REAL) return;
  const char *help = NULL;
  if (value.kind == CVALUE_TENSOR)
    help = "tensors have functions, not operators: add(a, b), sub, mul, divide, maximum; their elements are not known "
           "while the model is read";
  if (value.kind == CVALUE_STRING) help = "strings are compared with strcmp(a, b) == 0";
  evaluate_fail(evaluator, where, help, "an operator on %s", cvalue_text(evaluator->arena, value));
}

struct cvalue evaluate_arithmetic(struct evaluator *evaluator, enum operator_kind operation, struct cvalue a,
                                  struct cvalue b, struct location where) {
  need_number(evaluator, a, where);
  need_number(evaluator, b, where);
  if (operation == OPERATOR_LEFT || operation == OPERATOR_RIGHT) return shift(evaluator, operation, a, b, where);
  const struct type *type = common_type(a.type, b.type);
  a = convert_value(evaluator, a, type, where);
  b = convert_value(evaluator, b, type, where);
  if (ctype_of(type) == CTYPE_REAL) return real_operation(evaluator, operation, a.real, b.real, type, where);
  if (type->is_signed) return signed_operation(evaluator, operation, a.integer, b.integer, type, where);
  return unsigned_operation(evaluator, operation, (uint64_t)a.integer, (uint64_t)b.integer, type, where);
}

struct cvalue evaluate_sign(struct evaluator *evaluator, enum operator_kind operation, struct cvalue a,
                            struct location where) {
  need_number(evaluator, a, where);
  const struct type *type = promote(a.type);
  struct cvalue zero = {.kind = CVALUE_INTEGER, .type = &type_int};
  if (operation == OPERATOR_PLUS) return convert_value(evaluator, a, type, where);
  if (operation == OPERATOR_MINUS && ctype_of(type) == CTYPE_REAL) return real_result(-a.real, type);
  if (operation == OPERATOR_MINUS) return evaluate_arithmetic(evaluator, OPERATOR_SUBTRACT, zero, a, where);
  if (ctype_of(type) == CTYPE_REAL) evaluate_fail(evaluator, where, NULL, "'~' needs a whole number");
  struct cvalue ones = {.kind = CVALUE_INTEGER, .type = type, .integer = -1};
  if (!type->is_signed && ctype_bits(type) < 64) ones.integer = (int64_t)((UINT64_C(1) << ctype_bits(type)) - 1);
  return evaluate_arithmetic(evaluator, OPERATOR_BIT_XOR, a, ones, where);
}
