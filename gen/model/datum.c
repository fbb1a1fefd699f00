#include "gen/model/datum.h"

struct datum datum_integer(int64_t integer) {
  return (struct datum){.kind = DATUM_INTEGER, .type = &type_int, .integer = integer};
}

struct datum datum_real(double real) {
  return (struct datum){.kind = DATUM_REAL, .type = &type_double, .real = real};
}

struct datum datum_tensor(struct value *tensor) {
  return (struct datum){.kind = DATUM_TENSOR, .tensor = tensor};
}

struct datum datum_scope(struct scope *scope) {
  return (struct datum){.kind = DATUM_SCOPE, .scope = scope};
}

struct datum datum_string(const char *string) {
  return (struct datum){.kind = DATUM_STRING, .string = string};
}

const char *datum_text(struct arena *arena, struct datum datum) {
  switch (datum.kind) {
  case DATUM_INTEGER:
    if (!datum.type->is_signed) return arena_printf(arena, "%llu", (unsigned long long)datum.integer);
    return arena_printf(arena, "%lld", (long long)datum.integer);
  case DATUM_REAL:
    return arena_printf(arena, "%g", datum.real);
  case DATUM_STRING:
    return arena_printf(arena, "\"%s\"", datum.string);
  case DATUM_TENSOR:
    return "a tensor";
  case DATUM_SCOPE:
    return "a scope";
  case DATUM_AGGREGATE:
    return "a struct or array";
  case DATUM_POINTER:
    return "an array";
  default:
    return "nothing";
  }
}
