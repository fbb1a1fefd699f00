/* Types. */
#include "gen/audit/import.h"

#include <string.h>

static struct type *new_type(struct importer *importer, CXType type, enum type_kind kind) {
  struct type *made = arena_alloc(importer->arena, sizeof *made);
  made->kind = kind;
  made->name = import_string(importer, clang_getTypeSpelling(type));
  made->size = -1;
  /* libclang does not survive the question for the type of a function of the compiler's own. */
  if (kind != TYPE_FUNCTION && kind != TYPE_OTHER && kind != TYPE_VOID) made->size = clang_Type_getSizeOf(type);
  if (made->size < 0) made->size = -1;
  made->count = -1;
  return made;
}

struct member_list {
  struct importer *importer;
  struct type *type;
};

static enum CXVisitorResult add_member(CXCursor cursor, CXClientData data) {
  struct member_list *list = data;
  struct importer *importer = list->importer;
  struct type *type = list->type;
  struct member member = {.name = import_string(importer, clang_getCursorSpelling(cursor)),
                          .type = import_type(importer, clang_getCursorType(cursor)),
                          .offset = clang_Cursor_getOffsetOfField(cursor) / 8};
  if (clang_Cursor_isBitField(cursor)) member.offset = -1;
  CXType field = clang_getCanonicalType(clang_getCursorType(cursor));
  if (field.kind == CXType_Record && clang_Cursor_isAnonymous(clang_getTypeDeclaration(field)) &&
      strchr(member.name, '(') != NULL)
    member.name = "";
  type->members =
      arena_grow(importer->arena, type->members, type->n_members, &type->members_capacity, sizeof *type->members);
  type->members[type->n_members++] = member;
  return CXVisit_Continue;
}

static const struct type *import_record(struct importer *importer, CXType type) {
  CXCursor declaration = clang_getTypeDeclaration(type);
  struct type *made = import_known(importer, declaration);
  if (made != NULL) return made;
  made = new_type(importer, type, TYPE_RECORD);
  import_remember(importer, declaration, made);
  made->is_union = clang_getCursorKind(declaration) == CXCursor_UnionDecl;
  struct member_list list = {importer, made};
  if (made->size >= 0) clang_Type_visitFields(type, add_member, &list);
  return made;
}

static const struct type *import_sequence(struct importer *importer, CXType type, enum type_kind kind, CXType element,
                                          int64_t count) {
  struct type *made = new_type(importer, type, kind);
  made->element = import_type(importer, element);
  made->count = count;
  made->points_to_constant = kind == TYPE_POINTER && clang_isConstQualifiedType(element);
  return made;
}

static struct type *new_scalar(struct importer *importer, CXType type) {
  switch (type.kind) {
  case CXType_Char_S:
  case CXType_SChar:
  case CXType_Short:
  case CXType_Int:
  case CXType_Long:
  case CXType_LongLong:
  case CXType_Int128: {
    struct type *made = new_type(importer, type, TYPE_INTEGER);
    made->is_signed = true;
    return made;
  }
  case CXType_Bool:
  case CXType_Char_U:
  case CXType_UChar:
  case CXType_UShort:
  case CXType_UInt:
  case CXType_ULong:
  case CXType_ULongLong:
  case CXType_UInt128:
    return new_type(importer, type, TYPE_INTEGER);
  case CXType_Float:
  case CXType_Double:
  case CXType_LongDouble:
  case CXType_Half:
  case CXType_Float16:
  case CXType_BFloat16:
  case CXType_Float128:
    return new_type(importer, type, TYPE_REAL);
  case CXType_Void:
    return new_type(importer, type, TYPE_VOID);
  case CXType_FunctionProto:
  case CXType_FunctionNoProto:
    return new_type(importer, type, TYPE_FUNCTION);
  default:
    return new_type(importer, type, TYPE_OTHER);
  }
}

static const struct type *import_scalar(struct importer *importer, CXType type) {
  CXType plain = clang_getUnqualifiedType(type);
  struct type **known = (int)plain.kind < SCALAR_KINDS ? &importer->scalars[plain.kind] : NULL;
  if (known == NULL) return new_scalar(importer, plain);
  if (*known == NULL) *known = new_scalar(importer, plain);
  return *known;
}

/* An array that a parameter's declaration was written with: libclang gives it for the adjusted pointer. */
static bool is_array(CXType type) {
  return type.kind == CXType_ConstantArray || type.kind == CXType_IncompleteArray || type.kind == CXType_VariableArray;
}

const struct type *import_type(struct importer *importer, CXType type) {
  CXType canonical = is_array(type) ? type : clang_getCanonicalType(type);
  switch (canonical.kind) {
  case CXType_Pointer:
    return import_sequence(importer, canonical, TYPE_POINTER, clang_getPointeeType(canonical), -1);
  case CXType_ConstantArray:
    return import_sequence(importer, canonical, TYPE_ARRAY, clang_getArrayElementType(canonical),
                           clang_getArraySize(canonical));
  case CXType_IncompleteArray:
  case CXType_VariableArray:
    return import_sequence(importer, canonical, TYPE_ARRAY, clang_getArrayElementType(canonical), -1);
  case CXType_Vector:
  case CXType_ExtVector:
    return import_sequence(importer, canonical, TYPE_VECTOR, clang_getElementType(canonical),
                           clang_getNumElements(canonical));
  case CXType_Record:
    return import_record(importer, canonical);
  case CXType_Enum:
    return import_type(importer, clang_getEnumDeclIntegerType(clang_getTypeDeclaration(canonical)));
  default:
    return import_scalar(importer, canonical);
  }
}
