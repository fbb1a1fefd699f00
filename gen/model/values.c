/* Values: making, copying, converting and storing them. */
#include "gen/model/evaluate.h"

#include <math.h>

enum { LARGEST_ARRAY = 1 << 20 };

struct datum fresh_datum(struct evaluator *evaluator, const struct type *type, bool zero, struct location where) {
  if (ctype_of(type) == CTYPE_OTHER)
    evaluate_fail(evaluator, where,
                  "a model has numbers, strings, enums, tensors, scopes, and structs and arrays of them",
                  "a model cannot have a value of type '%s'", type->name);
  if (zero && ctype_of(type) == CTYPE_INTEGER) return (struct datum){.kind = DATUM_INTEGER, .type = type};
  if (zero && ctype_of(type) == CTYPE_REAL) return (struct datum){.kind = DATUM_REAL, .type = type};
  if (!ctype_is_aggregate(type)) return (struct datum){.kind = DATUM_UNSET};
  int64_t count = ctype_parts(type);
  if (count < 0 || count > LARGEST_ARRAY)
    evaluate_fail(evaluator, where, NULL, "'%s' has more than %d elements", type->name, (int)LARGEST_ARRAY);
  evaluate_step(evaluator, where, count);
  struct datum made = {.kind = DATUM_AGGREGATE, .type = type};
  made.items = arena_alloc(evaluator->arena, ((size_t)count + 1) * sizeof(struct datum));
  made.count = count;
  for (int64_t i = 0; i < count; i++) made.items[i] = fresh_datum(evaluator, ctype_part(type, i), zero, where);
  return made;
}

/* A copy that shares nothing with the original. */
static struct datum copy_datum(struct evaluator *evaluator, struct datum datum, struct location where) {
  if (datum.kind != DATUM_AGGREGATE) return datum;
  evaluate_step(evaluator, where, datum.count);
  struct datum *items = arena_alloc(evaluator->arena, ((size_t)datum.count + 1) * sizeof(struct datum));
  for (int64_t i = 0; i < datum.count; i++) items[i] = copy_datum(evaluator, datum.items[i], where);
  datum.items = items;
  return datum;
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

static struct datum to_integer(struct evaluator *evaluator, struct datum datum, const struct type *type,
                               struct location where) {
  if (type->is_bool) {
    bool truth = datum.kind == DATUM_REAL ? datum.real != 0 : datum.integer != 0;
    return (struct datum){.kind = DATUM_INTEGER, .type = type, .integer = truth};
  }
  int64_t value = datum.integer;
  if (datum.kind == DATUM_REAL) {
    double limit = ldexp(1, type->is_signed ? ctype_bits(type) - 1 : ctype_bits(type));
    double least = type->is_signed ? -limit : 0;
    double whole = trunc(datum.real);
    if (!(whole >= least && whole < limit))
      evaluate_fail(evaluator, where, NULL, "%g does not fit into '%s'", datum.real, type->name);
    value = type->is_signed || whole < ldexp(1, 63) ? (int64_t)whole : (int64_t)(uint64_t)whole;
  } else if (type->is_signed) {
    bool huge = !datum.type->is_signed && ctype_bits(datum.type) == 64 && value < 0;
    if (huge || !fits(value, type))
      evaluate_fail(evaluator, where, "use a wider type, such as long", "%s does not fit into '%s'",
                    datum_text(evaluator->arena, datum), type->name);
  } else if (ctype_bits(type) < 64) {
    value = (int64_t)((uint64_t)value & ((UINT64_C(1) << ctype_bits(type)) - 1));
  }
  return (struct datum){.kind = DATUM_INTEGER, .type = type, .integer = value};
}

static struct datum to_real(struct datum datum, const struct type *type) {
  double value = datum.real;
  if (datum.kind == DATUM_INTEGER)
    value = datum.type->is_signed ? (double)datum.integer : (double)(uint64_t)datum.integer;
  if (ctype_bits(type) == 32) value = (float)value;
  return (struct datum){.kind = DATUM_REAL, .type = type, .real = value};
}

static bool is_number(struct datum datum) {
  return datum.kind == DATUM_INTEGER || datum.kind == DATUM_REAL;
}

struct datum convert_datum(struct evaluator *evaluator, struct datum datum, const struct type *type,
                           struct location where) {
  bool number = is_number(datum);
  switch (ctype_of(type)) {
  case CTYPE_VOID:
    return (struct datum){.kind = DATUM_VOID};
  case CTYPE_INTEGER:
    if (number) return to_integer(evaluator, datum, type, where);
    if (datum.kind == DATUM_TENSOR)
      evaluate_fail(evaluator, where, tensor_truth_help, "a tensor's elements are not known while the model is read");
    break;
  case CTYPE_REAL:
    if (number) return to_real(datum, type);
    break;
  case CTYPE_TENSOR:
    if (datum.kind == DATUM_TENSOR) return datum;
    evaluate_fail(evaluator, where,
                  "a variable that gets its tensor later needs no value: 'tensor x;'; a tensor of numbers is "
                  "constant(0.0, dims...)",
                  "%s is no tensor", number ? datum_text(evaluator->arena, datum) : "this");
  case CTYPE_SCOPE:
    if (datum.kind == DATUM_SCOPE) return datum;
    break;
  case CTYPE_STRING:
    if (datum.kind == DATUM_STRING) return datum;
    evaluate_fail(evaluator, where, "strings are compared with strcmp(a, b) == 0", "%s is no string",
                  datum_text(evaluator->arena, datum));
  case CTYPE_POINTER:
    if (datum.kind == DATUM_POINTER) return datum;
    break;
  case CTYPE_ARRAY: /* a pointer, where a parameter is written as an array */
    if (datum.kind == DATUM_AGGREGATE || datum.kind == DATUM_POINTER) return datum;
    break;
  case CTYPE_STRUCT:
    if (datum.kind == DATUM_AGGREGATE) return datum;
    break;
  case CTYPE_OTHER:
    break;
  }
  evaluate_fail(evaluator, where,
                "a model has numbers, strings, enums, tensors, scopes, and structs and arrays of them",
                "a model cannot turn %s into '%s'", datum_text(evaluator->arena, datum), type->name);
}

bool evaluate_truth(struct evaluator *evaluator, const struct syntax *node) {
  struct datum datum = evaluate(evaluator, node);
  if (datum.kind == DATUM_TENSOR)
    evaluate_fail(evaluator, node->where, tensor_truth_help, "a tensor cannot be a condition");
  if (datum.kind == DATUM_INTEGER) return datum.integer != 0;
  if (datum.kind == DATUM_REAL) return datum.real != 0;
  evaluate_fail(evaluator, node->where, NULL, "%s cannot be a condition", datum_text(evaluator->arena, datum));
}

void store_datum(struct evaluator *evaluator, struct datum *cell, struct datum datum, const struct type *type,
                 const char *name, struct location where) {
  datum = convert_datum(evaluator, datum, type, where);
  *cell = copy_datum(evaluator, datum, where);
  if (cell->kind == DATUM_TENSOR && name != NULL) builder_name(evaluator->builder, cell->tensor, name);
}
