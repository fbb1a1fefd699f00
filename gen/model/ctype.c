#include "gen/model/ctype.h"

#include <string.h>

const struct ctype ctype_int = {.kind = CTYPE_INTEGER, .name = "int", .bits = 32, .is_signed = true};
const struct ctype ctype_double = {.kind = CTYPE_REAL, .name = "double", .bits = 64};
const struct ctype ctype_void = {.kind = CTYPE_VOID, .name = "void"};

bool ctype_is_aggregate(const struct ctype *type) {
  return type->kind == CTYPE_STRUCT || type->kind == CTYPE_ARRAY;
}

bool ctype_has_tensor(const struct ctype *type) {
  if (type->kind == CTYPE_TENSOR) return true;
  if (type->kind == CTYPE_ARRAY || type->kind == CTYPE_POINTER) return ctype_has_tensor(type->element);
  for (int i = 0; type->kind == CTYPE_STRUCT && i < type->n_fields; i++)
    if (ctype_has_tensor(type->fields[i].type)) return true;
  return false;
}

int64_t ctype_parts(const struct ctype *type) {
  return type->kind == CTYPE_STRUCT ? type->n_fields : type->count;
}

const struct ctype *ctype_part(const struct ctype *type, int64_t index) {
  return type->kind == CTYPE_STRUCT ? type->fields[index].type : type->element;
}

int ctype_field(const struct ctype *type, const char *name) {
  for (int i = 0; i < type->n_fields; i++)
    if (strcmp(type->fields[i].name, name) == 0) return i;
  return -1;
}
