/* Values: making, copying, converting and storing them. */
#include "gen/model/evaluate.h"

#include <math.h>

enum { LARGEST_ARRAY = 1 << 20 };

struct cvalue new_value(struct evaluator *evaluator, const struct type *type, bool zero, struct location where) {
  if (ctype_of(type) == CTYPE_OTHER)
    evaluate_fail(evaluator, where,
                  "a model has numbers, strings, enums, tensors, scopes, and structs and arrays of them",
                  "a model cannot have a value of type '%s'", type->name);
  if (zero && ctype_of(type) == CTYPE_INTEGER) return (struct cvalue){.kind = CVALUE_INTEGER, .type = type};
  if (zero && ctype_of(type) == CTYPE_REAL) return (struct cvalue){.kind = CVALUE_REAL, .type = type};
  if (!ctype_is_aggregate(type)) return (struct cvalue){.kind = CVALUE_UNSET};
  int64_t count = ctype_parts(type);
  if (count < 0 || count > LARGEST_ARRAY)
    evaluate_fail(evaluator, where, NULL, "'%s' has more than %d elements", type->name, (int)LARGEST_ARRAY);
  evaluate_step(evaluator, where, count);
  struct cvalue made = {.kind = CVALUE_AGGREGATE, .type = type};
  made.items = arena_alloc(evaluator->arena, ((size_t)count + 1) * sizeof(struct cvalue));
  made.count = count;
  for (int64_t i = 0; i < count; i++) made.items[i] = new_value(evaluator, ctype_part(type, i), zero, where);
  return made;
}

/* A copy that shares nothing with the original. */
static struct cvalue copy_value(struct evaluator *evaluator, struct cvalue value, struct location where) {
  if (value.kind != CVALUE_AGGREGATE) return value;
  evaluate_step(evaluator, where, value.count);
  struct cvalue *items = arena_alloc(evaluator->arena, ((size_t)value.count + 1) * sizeof(struct cvalue));
  for (int64_t i = 0; i < value.count; i++) items[i] = copy_value(evaluator, value.items[i], where);
  value.items = items;
  return value;
}

/* ---- Conversion ---- */

static const char *const tensor_truth_help =
    "what a model decides must be known when it is read: ask for shapes with dim(x, axis), and choose between elements "
    "with maximum, minimum, relu, or mul by a mask";

static bool fits(int64_t value, const struct type *type) {
  if (ctype_bits(type) >= 64) return true;
  int64_t limit = INT64_C(1) << (ctype_bits(type) - 1);
  return value >= -limit && value < limit;
}

static struct cvalue to_integer(struct evaluator *evaluator, struct cvalue value, const struct type *type,
                                struct location where) {
  if (type->is_bool) {
    bool truth = value.kind == CVALUE_REAL ? value.real != 0 : value.integer != 0;
    return (struct cvalue){.kind = CVALUE_INTEGER, .type = type, .integer = truth};
  }
  int64_t result = value.integer;
  if (value.kind == CVALUE_REAL) {
    double limit = ldexp(1, type->is_signed ? ctype_bits(type) - 1 : ctype_bits(type));
    double least = type->is_signed ? -limit : 0;
    double whole = trunc(value.real);
    if (!(whole >= least && whole < limit))
      evaluate_fail(evaluator, where, NULL, "%g does not fit into '%s'", value.real, type->name);
    result = type->is_signed || whole < ldexp(1, 63) ? (int64_t)whole : (int64_t)(uint64_t)whole;
  } else if (type->is_signed) {
    bool huge = !value.type->is_signed && ctype_bits(value.type) == 64 && result < 0;
    if (huge || !fits(result, type))
      evaluate_fail(evaluator, where, "use a wider type, such as long", "%s does not fit into '%s'",
                    cvalue_text(evaluator->arena, value), type->name);
  } else if (ctype_bits(type) < 64) {
    result = (int64_t)((uint64_t)result & ((UINT64_C(1) << ctype_bits(type)) - 1));
  }
  return (struct cvalue){.kind = CVALUE_INTEGER, .type = type, .integer = result};
}

static struct cvalue to_real(struct cvalue value, const struct type *type) {
  double result = value.real;
  if (value.kind == CVALUE_INTEGER)
    result = value.type->is_signed ? (double)value.integer : (double)(uint64_t)value.integer;
  if (ctype_bits(type) == 32) result = (float)result;
  return (struct cvalue){.kind = CVALUE_REAL, .type = type, .real = result};
}

static bool is_number(struct cvalue value) {
  return value.kind == CVALUE_INTEGER || value.kind == CVALUE_REAL;
}

struct cvalue convert_value(struct evaluator *evaluator, struct cvalue value, const struct type *type,
                            struct location where) {
  bool number = is_number(value);
  switch (ctype_of(type)) {
  case CTYPE_VOID:
    return (struct cvalue){.kind = CVALUE_VOID};
  case CTYPE_INTEGER:
    if (number) return to_integer(evaluator, value, type, where);
    if (value.kind == CVALUE_TENSOR)
      evaluate_fail(evaluator, where, tensor_truth_help, "a tensor's elements are not known while the model is read");
    break;
  case CTYPE_REAL:
    if (number) return to_real(value, type);
    break;
  case CTYPE_TENSOR:
    if (value.kind == CVALUE_TENSOR) return value;
    evaluate_fail(evaluator, where,
                  "a variable that gets its tensor later needs no value: 'tensor x;'; a tensor of numbers is "
                  "constant(0.0, dims...)",
                  "%s is not a tensor", number ? cvalue_text(evaluator->arena, value) : "this");
  case CTYPE_SCOPE:
    if (value.kind == CVALUE_SCOPE) return value;
    break;
  case CTYPE_STRING:
    if (value.kind == CVALUE_STRING) return value;
    evaluate_fail(evaluator, where, "strings are compared with strcmp(a, b) == 0", "%s is not a string",
                  cvalue_text(evaluator->arena, value));
  case CTYPE_POINTER:
    if (value.kind == CVALUE_POINTER) return value;
    break;
  case CTYPE_ARRAY: /* a pointer, where a parameter is written as an array */
    if (value.kind == CVALUE_AGGREGATE || value.kind == CVALUE_POINTER) return value;
    break;
  case CTYPE_STRUCT:
    if (value.kind == CVALUE_AGGREGATE) return value;
    break;
  case CTYPE_OTHER:
    break;
  }
  evaluate_fail(evaluator, where,
                "a model has numbers, strings, enums, tensors, scopes, and structs and arrays of them",
                "a model cannot turn %s into '%s'", cvalue_text(evaluator->arena, value), type->name);
}

bool evaluate_truth(struct evaluator *evaluator, const struct syntax *node) {
  struct cvalue value = evaluate(evaluator, node);
  if (value.kind == CVALUE_TENSOR)
    evaluate_fail(evaluator, node->where, tensor_truth_help, "a tensor cannot be a condition");
  if (value.kind == CVALUE_INTEGER) return value.integer != 0;
  if (value.kind == CVALUE_REAL) return value.real != 0;
  if (value.kind == CVALUE_STRING) return value.string != NULL; /* as in assert(n > 0 && "there is a layer") */
  evaluate_fail(evaluator, node->where, NULL, "%s cannot be a condition", cvalue_text(evaluator->arena, value));
}

void store_value(struct evaluator *evaluator, struct cvalue *cell, struct cvalue value, const struct type *type,
                 const char *name, struct location where) {
  value = convert_value(evaluator, value, type, where);
  *cell = copy_value(evaluator, value, where);
  if (cell->kind == CVALUE_TENSOR && name != NULL) builder_name(evaluator->builder, cell->tensor, name);
}
