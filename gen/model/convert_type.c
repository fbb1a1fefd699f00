/* Types: libclang's to ours. */
#include "gen/model/convert.h"

#include <stdlib.h>
#include <string.h>

static const struct ctype *new_type(struct converter *converter, const char *name, struct ctype made) {
  struct ctype *type = arena_alloc(converter->arena, sizeof *type);
  *type = made;
  type->name = name;
  return type;
}

static bool is_record(CXType type, const char *name) {
  CXCursor declaration = clang_getTypeDeclaration(type);
  CXString spelling = clang_getCursorSpelling(declaration);
  bool same = strcmp(clang_getCString(spelling), name) == 0;
  clang_disposeString(spelling);
  return same;
}

static const struct ctype *convert_pointer(struct converter *converter, const char *name, CXType pointee) {
  if (pointee.kind == CXType_Record && is_record(pointee, "accel_tensor"))
    return new_type(converter, name, (struct ctype){.kind = CTYPE_TENSOR});
  if (pointee.kind == CXType_Record && is_record(pointee, "accel_scope"))
    return new_type(converter, name, (struct ctype){.kind = CTYPE_SCOPE});
  if (pointee.kind == CXType_Char_S || pointee.kind == CXType_Char_U)
    return new_type(converter, name, (struct ctype){.kind = CTYPE_STRING});
  const struct ctype *element = convert_type(converter, pointee);
  bool other = element->kind == CTYPE_OTHER || element->kind == CTYPE_VOID;
  return new_type(converter, name, (struct ctype){.kind = other ? CTYPE_OTHER : CTYPE_POINTER, .element = element});
}

/* ---- Declared types ---- */

static const struct ctype *known_type(const struct converter *converter, CXCursor declaration) {
  for (int i = 0; i < converter->types.count; i++)
    if (clang_equalCursors(converter->types.items[i].cursor, declaration)) return converter->types.items[i].type;
  return NULL;
}

struct field_list {
  struct converter *converter;
  struct field *items;
  int count, capacity;
  bool strange;
};

static enum CXVisitorResult add_field(CXCursor cursor, CXClientData data) {
  struct field_list *list = data;
  struct converter *converter = list->converter;
  struct location where = convert_location(converter, clang_getCursorLocation(cursor));
  struct field field = {.name = convert_string(converter, clang_getCursorSpelling(cursor)),
                        .type = convert_type(converter, clang_getCursorType(cursor)),
                        .line = where.line,
                        .file = where.file};
  list->strange =
      list->strange || clang_Cursor_isBitField(cursor) || field.name[0] == '\0' || clang_Cursor_isAnonymous(cursor);
  ARENA_PUSH(converter->arena, *list, field);
  return CXVisit_Continue;
}

static void convert_record(struct converter *converter, const char *name, CXType type, struct ctype *made) {
  CXCursor declaration = clang_getTypeDeclaration(type);
  if (clang_getCursorKind(declaration) != CXCursor_StructDecl || clang_Type_getSizeOf(type) < 0) return;
  struct field_list list = {.converter = converter};
  clang_Type_visitFields(type, add_field, &list);
  if (!list.strange) *made = (struct ctype){CTYPE_STRUCT, .name = name, .fields = list.items, .n_fields = list.count};
}

struct enumerator_list {
  struct converter *converter;
  struct enumerator *items;
  int count, capacity;
};

static enum CXChildVisitResult add_enumerator(CXCursor cursor, CXCursor parent, CXClientData data) {
  struct enumerator_list *list = data;
  (void)parent;
  if (clang_getCursorKind(cursor) != CXCursor_EnumConstantDecl) return CXChildVisit_Continue;
  struct enumerator item = {convert_string(list->converter, clang_getCursorSpelling(cursor)),
                            clang_getEnumConstantDeclValue(cursor)};
  ARENA_PUSH(list->converter->arena, *list, item);
  return CXChildVisit_Continue;
}

static void convert_enum(struct converter *converter, const char *name, CXType type, struct ctype *made) {
  CXCursor declaration = clang_getTypeDeclaration(type);
  struct enumerator_list list = {.converter = converter};
  clang_visitChildren(declaration, add_enumerator, &list);
  *made = *convert_type(converter, clang_getEnumDeclIntegerType(declaration));
  made->name = name;
  made->enumerators = list.items;
  made->n_enumerators = list.count;
}

static const struct ctype *convert_declared(struct converter *converter, const char *name, CXType type) {
  CXCursor declaration = clang_getTypeDeclaration(type);
  const struct ctype *known = known_type(converter, declaration);
  if (known != NULL) return known;
  /* Known before its fields are: a struct that points to itself is outside the subset. */
  struct ctype *made = arena_alloc(converter->arena, sizeof *made);
  *made = (struct ctype){.kind = CTYPE_OTHER, .name = name};
  struct declared_type item = {declaration, made};
  ARENA_PUSH(converter->arena, converter->types, item);
  if (type.kind == CXType_Enum)
    convert_enum(converter, name, type, made);
  else
    convert_record(converter, name, type, made);
  return made;
}

const struct ctype *convert_decayed(struct converter *converter, const struct ctype *type) {
  if (type->kind != CTYPE_ARRAY) return type;
  return new_type(converter, type->name, (struct ctype){.kind = CTYPE_POINTER, .element = type->element});
}

/* ---- All ---- */

static const struct ctype *convert_integer(struct converter *converter, const char *name, CXType type) {
  bool is_signed = false;
  switch (type.kind) {
  case CXType_Char_S:
  case CXType_SChar:
  case CXType_Short:
  case CXType_Int:
  case CXType_Long:
  case CXType_LongLong:
    is_signed = true;
    break;
  case CXType_Bool:
  case CXType_Char_U:
  case CXType_UChar:
  case CXType_UShort:
  case CXType_UInt:
  case CXType_ULong:
  case CXType_ULongLong:
    break;
  default:
    return NULL;
  }
  if (type.kind == CXType_Int) return &ctype_int;
  return new_type(converter, name,
                  (struct ctype){.kind = CTYPE_INTEGER,
                                 .bits = 8 * (int)clang_Type_getSizeOf(type),
                                 .is_signed = is_signed,
                                 .is_bool = type.kind == CXType_Bool});
}

const struct ctype *convert_type(struct converter *converter, CXType type) {
  CXType canonical = clang_getUnqualifiedType(clang_getCanonicalType(type));
  if (canonical.kind == CXType_Int) return &ctype_int;
  if (canonical.kind == CXType_Double) return &ctype_double;
  if (canonical.kind == CXType_Void) return &ctype_void;
  const char *name = convert_string(converter, clang_getTypeSpelling(type));
  switch (canonical.kind) {
  case CXType_Float:
    return new_type(converter, name, (struct ctype){.kind = CTYPE_REAL, .bits = 32});
  case CXType_Pointer:
    return convert_pointer(converter, name, clang_getUnqualifiedType(clang_getPointeeType(canonical)));
  case CXType_ConstantArray:
  case CXType_IncompleteArray:
  case CXType_VariableArray: {
    const struct ctype *element = convert_type(converter, clang_getArrayElementType(canonical));
    int64_t count = canonical.kind == CXType_ConstantArray ? clang_getArraySize(canonical) : -1;
    return new_type(converter, name,
                    (struct ctype){.kind = element->kind == CTYPE_OTHER ? CTYPE_OTHER : CTYPE_ARRAY,
                                   .element = element,
                                   .count = count});
  }
  case CXType_Record:
  case CXType_Enum:
    return convert_declared(converter, name, canonical);
  default:
    break;
  }
  const struct ctype *integer = convert_integer(converter, name, canonical);
  return integer != NULL ? integer : new_type(converter, name, (struct ctype){.kind = CTYPE_OTHER});
}
