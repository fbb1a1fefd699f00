/* Expressions. */
#include <string.h>

#include "gen/c/import.h"
#include "gen/c/limit.h"

/* ---- Literals ---- */

/* A node for what the compiler can compute, or `unknown`. */
static struct syntax *import_constant(struct importer *importer, CXCursor cursor, enum unknown_kind unknown) {
  CXEvalResult result = clang_Cursor_Evaluate(cursor);
  CXEvalResultKind kind = result == NULL ? CXEval_UnExposed : clang_EvalResult_getKind(result);
  struct syntax *node = NULL;
  if (kind == CXEval_Int) {
    node = import_node(importer, SYNTAX_INTEGER, cursor, 0);
    bool is_unsigned = clang_EvalResult_isUnsignedInt(result) != 0;
    node->integer =
        is_unsigned ? (int64_t)clang_EvalResult_getAsUnsigned(result) : (int64_t)clang_EvalResult_getAsLongLong(result);
  } else if (kind == CXEval_Float) {
    node = import_node(importer, SYNTAX_REAL, cursor, 0);
    node->real = clang_EvalResult_getAsDouble(result);
  }
  if (result != NULL) clang_EvalResult_dispose(result);
  return node != NULL ? node : import_unknown(importer, cursor, unknown);
}

static struct syntax *import_text(struct importer *importer, CXCursor cursor) {
  struct syntax *node = import_node(importer, SYNTAX_STRING, cursor, 0);
  node->text = import_string(importer, clang_getCursorSpelling(cursor));
  return node;
}

/* ---- Names ---- */

static struct syntax *import_name(struct importer *importer, CXCursor cursor) {
  CXCursor declaration = clang_getCursorReferenced(cursor);
  struct syntax *node;
  switch (clang_getCursorKind(declaration)) {
  case CXCursor_EnumConstantDecl:
    node = import_node(importer, SYNTAX_INTEGER, cursor, 0);
    node->integer = clang_getEnumConstantDeclValue(declaration);
    return node;
  case CXCursor_FunctionDecl:
    node = import_node(importer, SYNTAX_FUNCTION, cursor, 0);
    node->function = import_function(importer, declaration);
    return node;
  case CXCursor_VarDecl:
  case CXCursor_ParmDecl:
    node = import_node(importer, SYNTAX_VARIABLE, cursor, 0);
    node->variable = import_variable(importer, declaration);
    return node;
  default:
    if (importer->is_device) return import_constant(importer, cursor, UNKNOWN_EXPRESSION); /* of a template */
    return import_unknown(importer, cursor, UNKNOWN_EXPRESSION);
  }
}

static struct syntax *member_of(struct importer *importer, CXCursor cursor, struct syntax *base, int member) {
  struct syntax *node = import_node(importer, SYNTAX_MEMBER, cursor, 1);
  node->parts[0] = base;
  node->member = member;
  node->text = base->type->members[member].name;
  node->type = base->type->members[member].type;
  return node;
}

/* The member `name` of `base`, directly or through unnamed structs and unions; NULL when there is none. */
static struct syntax *search_member(struct importer *importer, CXCursor cursor, struct syntax *base, const char *name) {
  if (base->type->kind != TYPE_RECORD) return NULL;
  int found = type_member(base->type, name);
  if (found >= 0) return member_of(importer, cursor, base, found);
  for (int i = 0; i < base->type->n_members; i++) {
    const struct type *inner = base->type->members[i].type;
    if (base->type->members[i].name[0] != '\0' || inner->kind != TYPE_RECORD) continue;
    struct syntax *node = search_member(importer, cursor, member_of(importer, cursor, base, i), name);
    if (node != NULL) return node;
  }
  return NULL;
}

/* The unnamed member of this type. */
static struct syntax *search_unnamed(struct importer *importer, CXCursor cursor, struct syntax *base) {
  const struct type *type = import_type(importer, clang_getCursorType(cursor));
  for (int i = 0; base->type->kind == TYPE_RECORD && i < base->type->n_members; i++)
    if (base->type->members[i].type == type) return member_of(importer, cursor, base, i);
  return NULL;
}

static struct syntax *import_member(struct importer *importer, CXCursor cursor) {
  struct cursors children = import_children(importer, cursor);
  if (children.count == 0) return import_unknown(importer, cursor, UNKNOWN_MEMBER);
  struct syntax *base = import_expression(importer, children.items[0]);
  if (base->type->kind == TYPE_POINTER || base->type->kind == TYPE_ARRAY) { /* p->member is (*p).member */
    struct syntax *pointed = import_node(importer, SYNTAX_UNARY, children.items[0], 1);
    pointed->operation = OPERATOR_DEREFERENCE;
    pointed->parts[0] = base;
    pointed->type = base->type->element;
    base = pointed;
  }
  const char *name = import_string(importer, clang_getCursorSpelling(cursor));
  bool unnamed = name[0] == '\0' || strchr(name, '(') != NULL;
  struct syntax *node = unnamed ? search_unnamed(importer, cursor, base) : search_member(importer, cursor, base, name);
  return node != NULL ? node : import_unknown(importer, cursor, UNKNOWN_MEMBER);
}

/* ---- Operators ---- */

static enum operator_kind binary_operator(enum CXBinaryOperatorKind kind) {
  switch (kind) {
  case CXBinaryOperator_Mul:
  case CXBinaryOperator_MulAssign:
    return OPERATOR_MULTIPLY;
  case CXBinaryOperator_Div:
  case CXBinaryOperator_DivAssign:
    return OPERATOR_DIVIDE;
  case CXBinaryOperator_Rem:
  case CXBinaryOperator_RemAssign:
    return OPERATOR_REMAINDER;
  case CXBinaryOperator_Add:
  case CXBinaryOperator_AddAssign:
    return OPERATOR_ADD;
  case CXBinaryOperator_Sub:
  case CXBinaryOperator_SubAssign:
    return OPERATOR_SUBTRACT;
  case CXBinaryOperator_Shl:
  case CXBinaryOperator_ShlAssign:
    return OPERATOR_LEFT;
  case CXBinaryOperator_Shr:
  case CXBinaryOperator_ShrAssign:
    return OPERATOR_RIGHT;
  case CXBinaryOperator_LT:
    return OPERATOR_LESS;
  case CXBinaryOperator_GT:
    return OPERATOR_GREATER;
  case CXBinaryOperator_LE:
    return OPERATOR_LESS_EQUAL;
  case CXBinaryOperator_GE:
    return OPERATOR_GREATER_EQUAL;
  case CXBinaryOperator_EQ:
    return OPERATOR_EQUAL;
  case CXBinaryOperator_NE:
    return OPERATOR_NOT_EQUAL;
  case CXBinaryOperator_And:
  case CXBinaryOperator_AndAssign:
    return OPERATOR_BIT_AND;
  case CXBinaryOperator_Xor:
  case CXBinaryOperator_XorAssign:
    return OPERATOR_BIT_XOR;
  case CXBinaryOperator_Or:
  case CXBinaryOperator_OrAssign:
    return OPERATOR_BIT_OR;
  case CXBinaryOperator_LAnd:
    return OPERATOR_AND;
  case CXBinaryOperator_LOr:
    return OPERATOR_OR;
  case CXBinaryOperator_Comma:
    return OPERATOR_COMMA;
  case CXBinaryOperator_Assign:
    return OPERATOR_NONE;
  default:
    return OPERATOR_OTHER;
  }
}

static struct syntax *import_parts(struct importer *importer, enum syntax_kind kind, CXCursor cursor, int expected) {
  struct cursors children = import_children(importer, cursor);
  if (children.count != expected) return import_unknown(importer, cursor, UNKNOWN_EXPRESSION);
  struct syntax *node = import_node(importer, kind, cursor, expected);
  for (int i = 0; i < expected; i++) node->parts[i] = import_expression(importer, children.items[i]);
  return node;
}

static struct syntax *import_binary(struct importer *importer, CXCursor cursor) {
  enum CXBinaryOperatorKind kind = clang_getCursorBinaryOperatorKind(cursor);
  bool compound = clang_getCursorKind(cursor) == CXCursor_CompoundAssignOperator;
  bool assigns = compound || kind == CXBinaryOperator_Assign;
  struct syntax *node = import_parts(importer, assigns ? SYNTAX_ASSIGN : SYNTAX_BINARY, cursor, 2);
  node->operation = binary_operator(kind);
  return node;
}

static enum operator_kind unary_operator(enum CXUnaryOperatorKind kind) {
  switch (kind) {
  case CXUnaryOperator_AddrOf:
    return OPERATOR_ADDRESS;
  case CXUnaryOperator_Deref:
    return OPERATOR_DEREFERENCE;
  case CXUnaryOperator_Plus:
    return OPERATOR_PLUS;
  case CXUnaryOperator_Minus:
    return OPERATOR_MINUS;
  case CXUnaryOperator_Not:
    return OPERATOR_COMPLEMENT;
  case CXUnaryOperator_LNot:
    return OPERATOR_NOT;
  default:
    return OPERATOR_OTHER;
  }
}

static struct syntax *import_unary(struct importer *importer, CXCursor cursor) {
  enum CXUnaryOperatorKind kind = clang_getCursorUnaryOperatorKind(cursor);
  bool increments = kind == CXUnaryOperator_PostInc || kind == CXUnaryOperator_PreInc;
  bool decrements = kind == CXUnaryOperator_PostDec || kind == CXUnaryOperator_PreDec;
  if (kind == CXUnaryOperator_Extension) return import_expression(importer, import_children(importer, cursor).items[0]);
  struct syntax *node = import_parts(importer, increments || decrements ? SYNTAX_INCREMENT : SYNTAX_UNARY, cursor, 1);
  node->integer = increments ? 1 : -1;
  node->prefix = kind == CXUnaryOperator_PreInc || kind == CXUnaryOperator_PreDec;
  node->operation = unary_operator(kind);
  return node;
}

/* The expression is the last child; a name of the type may precede it. */
static struct syntax *import_last(struct importer *importer, enum syntax_kind kind, CXCursor cursor) {
  struct cursors children = import_children(importer, cursor);
  if (children.count == 0) return import_unknown(importer, cursor, UNKNOWN_EXPRESSION);
  struct syntax *node = import_node(importer, kind, cursor, 1);
  node->parts[0] = import_statement(importer, children.items[children.count - 1]);
  return node;
}

/* Whether a text is within a macro of a system's header. */
static bool is_system_text(struct importer *importer, CXCursor cursor) {
  CXFile file;
  unsigned line, column;
  clang_getSpellingLocation(clang_getCursorLocation(cursor), &file, &line, &column, NULL);
  return file != NULL && clang_Location_isInSystemHeader(clang_getLocation(importer->unit, file, line, column));
}

static struct syntax *import_statements(struct importer *importer, CXCursor cursor) {
  struct syntax *node = import_last(importer, SYNTAX_STATEMENTS, cursor);
  node->is_system = is_system_text(importer, cursor);
  return node;
}

static struct syntax *import_parenthesized(struct importer *importer, CXCursor cursor) {
  struct cursors children = import_children(importer, cursor);
  if (children.count != 1) return import_unknown(importer, cursor, UNKNOWN_EXPRESSION);
  return import_expression(importer, children.items[0]);
}

/* What libclang has no word for: an implicit conversion around one operand, or something rare. */
static struct syntax *import_unexposed(struct importer *importer, CXCursor cursor) {
  struct cursors children = import_children(importer, cursor);
  if (children.count != 1 || !clang_isExpression(clang_getCursorKind(children.items[0])) ||
      !clang_equalRanges(clang_getCursorExtent(cursor), clang_getCursorExtent(children.items[0])))
    return import_constant(importer, cursor, UNKNOWN_EXPRESSION); /* offsetof */
  struct syntax *node = import_node(importer, SYNTAX_CAST, cursor, 1);
  node->parts[0] = import_expression(importer, children.items[0]);
  node->where = node->parts[0]->where; /* without parentheses, which may come from a macro */
  return node;
}

/* ---- Calls ---- */

/* What C++ writes as a call and C does not: a record's copy, and its assignment. NULL: it is a call. */
static struct syntax *import_record_call(struct importer *importer, CXCursor cursor, struct cursors children) {
  CXCursor callee = clang_getCursorReferenced(cursor);
  enum CXCursorKind kind = clang_getCursorKind(callee);
  if (kind == CXCursor_Constructor && children.count == 1) return import_expression(importer, children.items[0]);
  if (kind != CXCursor_CXXMethod || children.count < 2) return NULL;
  if (strcmp(import_string(importer, clang_getCursorSpelling(callee)), "operator=") != 0) return NULL;
  struct syntax *node = import_node(importer, SYNTAX_ASSIGN, cursor, 2);
  node->parts[0] = import_expression(importer, children.items[0]);
  node->parts[1] = import_expression(importer, children.items[children.count - 1]);
  return node;
}

static struct syntax *import_call(struct importer *importer, CXCursor cursor) {
  struct cursors children = import_children(importer, cursor);
  if (children.count == 0) return import_unknown(importer, cursor, UNKNOWN_EXPRESSION);
  struct syntax *record = importer->is_device ? import_record_call(importer, cursor, children) : NULL;
  if (record != NULL) return record;
  struct syntax *node = import_node(importer, SYNTAX_CALL, cursor, children.count);
  for (int i = 0; i < children.count; i++) node->parts[i] = import_expression(importer, children.items[i]);
  const struct syntax *callee = node->parts[0];
  while (callee->kind == SYNTAX_CAST) callee = callee->parts[0];
  if (callee->kind == SYNTAX_FUNCTION) node->function = callee->function;
  return node;
}

/* ---- Initial values ---- */

static struct syntax *import_step(struct importer *importer, CXCursor cursor) {
  if (clang_getCursorKind(cursor) != CXCursor_MemberRef) return import_expression(importer, cursor);
  struct syntax *node = import_node(importer, SYNTAX_DESIGNATOR, cursor, 0);
  node->text = import_string(importer, clang_getCursorSpelling(cursor));
  return node;
}

/* One item of {...}: a value, or designators and a value. */
static struct syntax *import_item(struct importer *importer, CXCursor cursor) {
  struct cursors children = import_children(importer, cursor);
  bool designated = clang_getCursorKind(cursor) == CXCursor_UnexposedExpr && children.count > 1 &&
                    clang_isExpression(clang_getCursorKind(children.items[children.count - 1]));
  if (!designated) return import_expression(importer, cursor);
  struct syntax *node = import_node(importer, SYNTAX_DESIGNATED, cursor, children.count);
  for (int i = 0; i < children.count; i++) node->parts[i] = import_step(importer, children.items[i]);
  return node;
}

static struct syntax *import_list(struct importer *importer, CXCursor cursor) {
  struct cursors children = import_children(importer, cursor);
  struct syntax *node = import_node(importer, SYNTAX_LIST, cursor, children.count);
  for (int i = 0; i < children.count; i++) node->parts[i] = import_item(importer, children.items[i]);
  return node;
}

/* ---- All ---- */

static struct syntax *expression(struct importer *importer, CXCursor cursor) {
  switch (clang_getCursorKind(cursor)) {
  case CXCursor_IntegerLiteral:
  case CXCursor_FloatingLiteral:
  case CXCursor_CharacterLiteral:
  case CXCursor_UnaryExpr: /* sizeof, _Alignof */
    return import_constant(importer, cursor, UNKNOWN_CONSTANT);
  case CXCursor_StringLiteral:
    return import_text(importer, cursor);
  case CXCursor_DeclRefExpr:
    return import_name(importer, cursor);
  case CXCursor_MemberRefExpr:
    return import_member(importer, cursor);
  case CXCursor_ArraySubscriptExpr:
    return import_parts(importer, SYNTAX_INDEX, cursor, 2);
  case CXCursor_ParenExpr:
    return import_parenthesized(importer, cursor);
  case CXCursor_UnaryOperator:
    return import_unary(importer, cursor);
  case CXCursor_BinaryOperator:
  case CXCursor_CompoundAssignOperator:
    return import_binary(importer, cursor);
  case CXCursor_ConditionalOperator:
    return import_parts(importer, SYNTAX_SELECT, cursor, 3);
  case CXCursor_CXXBoolLiteralExpr:
  case CXCursor_CXXNullPtrLiteralExpr:
    return import_constant(importer, cursor, UNKNOWN_CONSTANT);
  case CXCursor_CStyleCastExpr:
  case CXCursor_CXXStaticCastExpr:
  case CXCursor_CXXReinterpretCastExpr:
  case CXCursor_CXXConstCastExpr:
  case CXCursor_CXXFunctionalCastExpr:
    return import_last(importer, SYNTAX_CAST, cursor);
  case CXCursor_CompoundLiteralExpr:
    return import_last(importer, SYNTAX_COMPOUND_LITERAL, cursor);
  case CXCursor_InitListExpr:
    return import_list(importer, cursor);
  case CXCursor_CallExpr:
    return import_call(importer, cursor);
  case CXCursor_StmtExpr:
    return import_statements(importer, cursor);
  case CXCursor_UnexposedExpr:
    return import_unexposed(importer, cursor);
  case CXCursor_GenericSelectionExpr:
    return import_unknown(importer, cursor, UNKNOWN_SELECTION);
  case CXCursor_ImaginaryLiteral:
    return import_unknown(importer, cursor, UNKNOWN_COMPLEX);
  default:
    return import_unknown(importer, cursor, UNKNOWN_EXPRESSION);
  }
}

/* libclang gives an expression whose type comes from a parameter's array as that array; it is a pointer to its first
 * element, but where it names the parameter itself. */
static const struct type *decayed(struct importer *importer, const struct syntax *node) {
  bool may_be_array = node->kind == SYNTAX_VARIABLE || node->kind == SYNTAX_MEMBER || node->kind == SYNTAX_INDEX ||
                      node->kind == SYNTAX_STRING || node->kind == SYNTAX_COMPOUND_LITERAL ||
                      node->kind == SYNTAX_LIST ||
                      (node->kind == SYNTAX_UNARY && node->operation == OPERATOR_DEREFERENCE);
  if (node->type->kind != TYPE_ARRAY || may_be_array) return node->type;
  struct type *pointer = arena_alloc(importer->arena, sizeof *pointer);
  *pointer = *node->type;
  pointer->kind = TYPE_POINTER;
  pointer->size = (int64_t)sizeof(void *);
  pointer->count = -1;
  return pointer;
}

struct syntax *import_expression(struct importer *importer, CXCursor cursor) {
  if (importer->depth >= PARSE_DEEPEST) return import_deep(importer, cursor, UNKNOWN_DEEP_EXPRESSION);
  importer->depth++;
  struct syntax *node = expression(importer, cursor);
  importer->depth--;
  if (node->type->kind == TYPE_VOID) node->type = import_type(importer, clang_getCursorType(cursor));
  node->type = decayed(importer, node);
  return node;
}
