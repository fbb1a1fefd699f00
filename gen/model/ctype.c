#include "gen/model/ctype.h"

#include <string.h>

/* A struct, but for unions and bit-fields. */
static bool is_plain(const struct type *record) {
  if (record->is_union || record->size < 0) return false;
  for (int i = 0; i < record->n_members; i++)
    if (record->members[i].offset < 0) return false;
  return true;
}

static enum ctype_kind pointer_kind(const struct type *pointer) {
  const struct type *element = pointer->element;
  if (pointer->is_recursive) return CTYPE_OTHER;
  if (element->kind == TYPE_RECORD && strcmp(element->tag, "accel_tensor") == 0) return CTYPE_TENSOR;
  if (element->kind == TYPE_RECORD && strcmp(element->tag, "accel_scope") == 0) return CTYPE_SCOPE;
  if (element->is_char) return CTYPE_STRING;
  enum ctype_kind kind = ctype_of(element);
  return kind == CTYPE_OTHER || kind == CTYPE_VOID ? CTYPE_OTHER : CTYPE_POINTER;
}

enum ctype_kind ctype_of(const struct type *type) {
  switch (type->kind) {
  case TYPE_VOID:
    return CTYPE_VOID;
  case TYPE_INTEGER:
    return type->size <= 8 ? CTYPE_INTEGER : CTYPE_OTHER;
  case TYPE_REAL:
    return type->size == 4 || type->size == 8 ? CTYPE_REAL : CTYPE_OTHER;
  case TYPE_POINTER:
    return pointer_kind(type);
  case TYPE_ARRAY:
    return ctype_of(type->element) == CTYPE_OTHER ? CTYPE_OTHER : CTYPE_ARRAY;
  case TYPE_RECORD:
    return is_plain(type) ? CTYPE_STRUCT : CTYPE_OTHER;
  default:
    return CTYPE_OTHER;
  }
}

int ctype_bits(const struct type *type) {
  return 8 * (int)type->size;
}

bool ctype_is_aggregate(const struct type *type) {
  enum ctype_kind kind = ctype_of(type);
  return kind == CTYPE_STRUCT || kind == CTYPE_ARRAY;
}

bool ctype_has_tensor(const struct type *type) {
  enum ctype_kind kind = ctype_of(type);
  if (kind == CTYPE_TENSOR) return true;
  if (kind == CTYPE_ARRAY || kind == CTYPE_POINTER) return ctype_has_tensor(type->element);
  for (int i = 0; kind == CTYPE_STRUCT && i < type->n_members; i++)
    if (ctype_has_tensor(type->members[i].type)) return true;
  return false;
}

int64_t ctype_parts(const struct type *type) {
  return type->kind == TYPE_RECORD ? type->n_members : type->count;
}

const struct type *ctype_part(const struct type *type, int64_t index) {
  return type->kind == TYPE_RECORD ? type->members[index].type : type->element;
}
