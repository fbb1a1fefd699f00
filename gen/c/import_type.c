/* Types. */
#include "gen/c/import.h"

#include <string.h>

/* A type of a kind, with the name that the source gives it. */
static struct type *new_type(struct importer *importer, CXType written, enum type_kind kind) {
  struct type *made = arena_alloc(importer->arena, sizeof *made);
  made->kind = kind;
  made->name = import_string(importer, clang_getTypeSpelling(clang_getUnqualifiedType(written)));
  made->size = -1;
  /* libclang does not survive the question for the type of a function of the compiler's own. */
  if (kind != TYPE_FUNCTION && kind != TYPE_OTHER && kind != TYPE_VOID) {
    made->size = clang_Type_getSizeOf(written);
    made->alignment = clang_Type_getAlignOf(written);
  }
  if (made->size < 0) made->size = -1;
  if (made->alignment < 1) made->alignment = 1;
  made->count = -1;
  return made;
}

/* ---- Records and enumerations ---- */

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
                          .where = import_location(importer, clang_getCursorLocation(cursor)),
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
  made->tag = import_string(importer, clang_getCursorSpelling(declaration));
  made->is_union = clang_getCursorKind(declaration) == CXCursor_UnionDecl;
  struct member_list list = {importer, made};
  const struct type *open = made;
  ARENA_PUSH(importer->arena, importer->open_records, open);
  if (made->size >= 0) clang_Type_visitFields(type, add_member, &list);
  importer->open_records.count--;
  return made;
}

struct enumerator_list {
  struct importer *importer;
  struct enumerator *items;
  int count, capacity;
};

static enum CXChildVisitResult add_enumerator(CXCursor cursor, CXCursor parent, CXClientData data) {
  struct enumerator_list *list = data;
  (void)parent;
  if (clang_getCursorKind(cursor) != CXCursor_EnumConstantDecl) return CXChildVisit_Continue;
  struct enumerator item = {import_string(list->importer, clang_getCursorSpelling(cursor)),
                            clang_getEnumConstantDeclValue(cursor)};
  ARENA_PUSH(list->importer->arena, *list, item);
  return CXChildVisit_Continue;
}

static const struct type *import_enumeration(struct importer *importer, CXType type) {
  CXCursor declaration = clang_getTypeDeclaration(type);
  struct type *made = import_known(importer, declaration);
  if (made != NULL) return made;
  made = new_type(importer, type, TYPE_INTEGER);
  import_remember(importer, declaration, made);
  made->is_signed = import_type(importer, clang_getEnumDeclIntegerType(declaration))->is_signed;
  struct enumerator_list list = {.importer = importer};
  clang_visitChildren(declaration, add_enumerator, &list);
  made->enumerators = list.items;
  made->n_enumerators = list.count;
  return made;
}

/* ---- Pointers, arrays, vectors ---- */

static bool is_open(const struct importer *importer, const struct type *record) {
  for (int i = 0; i < importer->open_records.count; i++)
    if (importer->open_records.items[i] == record) return true;
  return false;
}

static const struct type *import_sequence(struct importer *importer, CXType written, enum type_kind kind,
                                          CXType element, int64_t count) {
  struct type *made = new_type(importer, written, kind);
  made->element = import_type(importer, element);
  made->count = count;
  made->points_to_constant = kind == TYPE_POINTER && clang_isConstQualifiedType(element);
  made->is_recursive = kind == TYPE_POINTER && is_open(importer, made->element);
  return made;
}

/* ---- Numbers ---- */

static enum type_kind scalar_kind(enum CXTypeKind kind) {
  switch (kind) {
  case CXType_Char_S:
  case CXType_SChar:
  case CXType_Short:
  case CXType_Int:
  case CXType_Long:
  case CXType_LongLong:
  case CXType_Int128:
  case CXType_Bool:
  case CXType_Char_U:
  case CXType_UChar:
  case CXType_UShort:
  case CXType_UInt:
  case CXType_ULong:
  case CXType_ULongLong:
  case CXType_UInt128:
    return TYPE_INTEGER;
  case CXType_Float:
  case CXType_Double:
  case CXType_LongDouble:
  case CXType_Half:
  case CXType_Float16:
  case CXType_BFloat16:
  case CXType_Float128:
    return TYPE_REAL;
  case CXType_Void:
    return TYPE_VOID;
  case CXType_FunctionProto:
  case CXType_FunctionNoProto:
    return TYPE_FUNCTION;
  default:
    return TYPE_OTHER;
  }
}

static bool is_signed(enum CXTypeKind kind) {
  return kind == CXType_Char_S || kind == CXType_SChar || kind == CXType_Short || kind == CXType_Int ||
         kind == CXType_Long || kind == CXType_LongLong || kind == CXType_Int128;
}

static const struct type *known_scalar(const struct importer *importer, CXType written, enum CXTypeKind kind) {
  CXString spelling = clang_getTypeSpelling(clang_getUnqualifiedType(written));
  const struct type *found = NULL;
  for (int i = 0; i < importer->scalars[kind].count && found == NULL; i++)
    if (strcmp(importer->scalars[kind].items[i]->name, clang_getCString(spelling)) == 0)
      found = importer->scalars[kind].items[i];
  clang_disposeString(spelling);
  return found;
}

static const struct type *import_scalar(struct importer *importer, CXType written, enum CXTypeKind kind) {
  bool is_cached = (int)kind < SCALAR_KINDS;
  const struct type *known = is_cached ? known_scalar(importer, written, kind) : NULL;
  if (known != NULL) return known;
  struct type *made = new_type(importer, written, scalar_kind(kind));
  made->is_signed = is_signed(kind);
  made->is_bool = kind == CXType_Bool;
  made->is_char = kind == CXType_Char_S || kind == CXType_Char_U;
  known = made;
  if (is_cached) ARENA_PUSH(importer->arena, importer->scalars[kind], known);
  return known;
}

/* ---- All ---- */

/* An array that a parameter's declaration was written with: libclang gives it for the adjusted pointer. */
static bool is_array(CXType type) {
  return type.kind == CXType_ConstantArray || type.kind == CXType_IncompleteArray || type.kind == CXType_VariableArray;
}

/* What libclang has no type for, as an expression of C++ whose value is not materialised; libclang crashes when its
 * name is requested. */
static const struct type unknown_type = {.kind = TYPE_OTHER, .name = "", .size = -1, .alignment = 1, .count = -1};

const struct type *import_type(struct importer *importer, CXType type) {
  if (type.kind == CXType_Invalid) return &unknown_type;
  CXType canonical = is_array(type) ? type : clang_getCanonicalType(type);
  switch (canonical.kind) {
  case CXType_Pointer:
    return import_sequence(importer, type, TYPE_POINTER, clang_getPointeeType(canonical), -1);
  case CXType_ConstantArray:
    return import_sequence(importer, type, TYPE_ARRAY, clang_getArrayElementType(canonical),
                           clang_getArraySize(canonical));
  case CXType_IncompleteArray:
  case CXType_VariableArray:
    return import_sequence(importer, type, TYPE_ARRAY, clang_getArrayElementType(canonical), -1);
  case CXType_Vector:
  case CXType_ExtVector:
    return import_sequence(importer, type, TYPE_VECTOR, clang_getElementType(canonical),
                           clang_getNumElements(canonical));
  case CXType_LValueReference: /* to what is not written through it: as good as a copy */
    if (!clang_isConstQualifiedType(clang_getPointeeType(canonical)))
      return import_scalar(importer, type, CXType_Invalid);
    return import_type(importer, clang_getUnqualifiedType(clang_getPointeeType(canonical)));
  case CXType_Record:
    return import_record(importer, canonical);
  case CXType_Enum:
    return import_enumeration(importer, canonical);
  default:
    return import_scalar(importer, type, canonical.kind);
  }
}
