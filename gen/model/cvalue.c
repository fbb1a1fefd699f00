#include "gen/model/cvalue.h"

struct cvalue cvalue_integer(int64_t integer) {
  return (struct cvalue){.kind = CVALUE_INTEGER, .type = &type_int, .integer = integer};
}

struct cvalue cvalue_real(double real) {
  return (struct cvalue){.kind = CVALUE_REAL, .type = &type_double, .real = real};
}

struct cvalue cvalue_tensor(struct value *tensor) {
  return (struct cvalue){.kind = CVALUE_TENSOR, .tensor = tensor};
}

struct cvalue cvalue_scope(struct scope *scope) {
  return (struct cvalue){.kind = CVALUE_SCOPE, .scope = scope};
}

struct cvalue cvalue_string(const char *string) {
  return (struct cvalue){.kind = CVALUE_STRING, .string = string};
}

const char *cvalue_string_of(const struct cvalue *value) {
  return value->kind == CVALUE_STRING ? value->string : NULL;
}

const char *cvalue_text(struct arena *arena, struct cvalue value) {
  switch (value.kind) {
  case CVALUE_INTEGER:
    if (!value.type->is_signed) return arena_printf(arena, "%llu", (unsigned long long)value.integer);
    return arena_printf(arena, "%lld", (long long)value.integer);
  case CVALUE_REAL:
    return arena_printf(arena, "%g", value.real);
  case CVALUE_STRING:
    return arena_printf(arena, "\"%s\"", value.string);
  case CVALUE_TENSOR:
    return "a tensor";
  case CVALUE_SCOPE:
    return "a scope";
  case CVALUE_AGGREGATE:
    return "a struct or array";
  case CVALUE_POINTER:
    return "an array";
  default:
    return "nothing";
  }
}
