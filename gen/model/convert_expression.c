/* Expressions. */
#include "gen/model/convert.h"

#include <stdlib.h>
#include <string.h>

#include "gen/base/text.h"

bool convert_is_expression(CXCursor cursor) {
  return clang_isExpression(clang_getCursorKind(cursor)) != 0;
}

/* ---- Literals ---- */

static struct syntax *convert_constant(struct converter *converter, CXCursor cursor) {
  CXEvalResult result = clang_Cursor_Evaluate(cursor);
  CXEvalResultKind kind = result == NULL ? CXEval_UnExposed : clang_EvalResult_getKind(result);
  struct syntax *node = NULL;
  if (kind == CXEval_Int) {
    node = convert_node(converter, SYNTAX_INTEGER, cursor, 0);
    bool is_unsigned = clang_EvalResult_isUnsignedInt(result) != 0;
    node->integer =
        is_unsigned ? (int64_t)clang_EvalResult_getAsUnsigned(result) : (int64_t)clang_EvalResult_getAsLongLong(result);
  } else if (kind == CXEval_Float) {
    node = convert_node(converter, SYNTAX_REAL, cursor, 0);
    node->real = clang_EvalResult_getAsDouble(result);
  }
  if (result != NULL) clang_EvalResult_dispose(result);
  if (node == NULL) return convert_unsupported(converter, cursor, "this constant", "write a number");
  return node;
}

/* One character behind a backslash; moves *text behind it. */
static char unescape(const char **text) {
  static const char letters[] = "abfnrtv", characters[] = "\a\b\f\n\r\t\v";
  char letter = *(*text)++;
  const char *found = strchr(letters, letter);
  if (letter == 'x') {
    char *end;
    char value = (char)strtoul(*text, &end, 16);
    *text = end;
    return value;
  }
  if (letter >= '0' && letter <= '7') {
    int value = letter - '0';
    for (int i = 0; i < 2 && **text >= '0' && **text <= '7'; i++) value = value * 8 + (*(*text)++ - '0');
    return (char)value;
  }
  return found != NULL && letter != '\0' ? characters[found - letters] : letter;
}

/* libclang spells a literal with quotes and escapes, adjacent ones joined. */
static struct syntax *convert_text(struct converter *converter, CXCursor cursor) {
  const char *spelling = convert_string(converter, clang_getCursorSpelling(cursor));
  if (spelling[0] != '"') return convert_unsupported(converter, cursor, "a wide string", "write \"...\"");
  struct text text = text_in(converter->arena);
  for (const char *at = spelling + 1; *at != '\0' && *at != '"';) {
    char character = *at++;
    if (character == '\\' && *at != '\0') character = unescape(&at);
    text_add(&text, &character, 1);
  }
  struct syntax *node = convert_node(converter, SYNTAX_TEXT, cursor, 0);
  node->text = text_string(&text);
  return node;
}

/* ---- Names ---- */

static struct syntax *convert_name(struct converter *converter, CXCursor cursor) {
  CXCursor declaration = clang_getCursorReferenced(cursor);
  enum CXCursorKind kind = clang_getCursorKind(declaration);
  if (kind == CXCursor_EnumConstantDecl) {
    struct syntax *node = convert_node(converter, SYNTAX_INTEGER, cursor, 0);
    node->integer = clang_getEnumConstantDeclValue(declaration);
    return node;
  }
  if (kind == CXCursor_FunctionDecl)
    return convert_unsupported(converter, cursor, "a function that is not called", "call functions by their names");
  struct variable *variable = convert_find(converter, declaration);
  if (variable == NULL)
    return convert_unsupported(converter, cursor, "a variable of the system", "a model knows only its own values");
  struct syntax *node = convert_node(converter, SYNTAX_VARIABLE, cursor, 0);
  node->variable = variable;
  node->type = variable->type;
  return node;
}

static struct syntax *convert_member(struct converter *converter, CXCursor cursor) {
  struct cursors children = convert_children(converter, cursor);
  if (children.count == 0)
    return convert_unsupported(converter, cursor, "a member of an unnamed struct", "give the inner struct a name");
  struct syntax *base = convert_expression(converter, children.items[0]);
  const struct ctype *type = base->type;
  if (type->kind == CTYPE_POINTER) { /* p->field is (*p).field */
    struct syntax *pointed = convert_node(converter, SYNTAX_UNARY, children.items[0], 1);
    pointed->operation = OPERATOR_DEREFERENCE;
    pointed->parts[0] = base;
    pointed->type = type->element;
    base = pointed;
    type = base->type;
  }
  const char *name = convert_string(converter, clang_getCursorSpelling(cursor));
  int field = type->kind == CTYPE_STRUCT ? ctype_field(type, name) : -1;
  if (field < 0 && base->kind == SYNTAX_UNSUPPORTED) return base;
  if (field < 0)
    return convert_unsupported(converter, cursor,
                               "a member of a union, or of a struct with bit-fields or unnamed parts",
                               "write a plain struct");
  struct syntax *node = convert_node(converter, SYNTAX_MEMBER, cursor, 1);
  node->parts[0] = base;
  node->field = field;
  node->text = name;
  return node;
}

/* ---- Operators ---- */

static enum operation binary_operator(enum CXBinaryOperatorKind kind) {
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
  default:
    return OPERATOR_NONE;
  }
}

static struct syntax *convert_parts(struct converter *converter, enum syntax_kind kind, CXCursor cursor, int expected) {
  struct cursors children = convert_children(converter, cursor);
  if (children.count != expected)
    return convert_unsupported(converter, cursor, "this expression", "write it in plain C");
  struct syntax *node = convert_node(converter, kind, cursor, expected);
  for (int i = 0; i < expected; i++) node->parts[i] = convert_expression(converter, children.items[i]);
  return node;
}

static struct syntax *convert_binary(struct converter *converter, CXCursor cursor) {
  enum CXBinaryOperatorKind kind = clang_getCursorBinaryOperatorKind(cursor);
  bool compound = clang_getCursorKind(cursor) == CXCursor_CompoundAssignOperator;
  bool assigns = compound || kind == CXBinaryOperator_Assign;
  struct syntax *node = convert_parts(converter, assigns ? SYNTAX_ASSIGN : SYNTAX_BINARY, cursor, 2);
  node->operation = binary_operator(kind);
  return node;
}

static struct syntax *convert_unary(struct converter *converter, CXCursor cursor) {
  enum CXUnaryOperatorKind kind = clang_getCursorUnaryOperatorKind(cursor);
  switch (kind) {
  case CXUnaryOperator_Extension:
    return convert_expression(converter, convert_children(converter, cursor).items[0]);
  case CXUnaryOperator_AddrOf:
    return convert_unsupported(converter, cursor, "an address", "pass the value, and return what changes in a struct");
  case CXUnaryOperator_PostInc:
  case CXUnaryOperator_PostDec:
  case CXUnaryOperator_PreInc:
  case CXUnaryOperator_PreDec: {
    struct syntax *node = convert_parts(converter, SYNTAX_INCREMENT, cursor, 1);
    node->integer = kind == CXUnaryOperator_PostInc || kind == CXUnaryOperator_PreInc ? 1 : -1;
    node->prefix = kind == CXUnaryOperator_PreInc || kind == CXUnaryOperator_PreDec;
    return node;
  }
  default:
    break;
  }
  struct syntax *node = convert_parts(converter, SYNTAX_UNARY, cursor, 1);
  switch (kind) {
  case CXUnaryOperator_Deref:
    node->operation = OPERATOR_DEREFERENCE;
    break;
  case CXUnaryOperator_Plus:
    node->operation = OPERATOR_PLUS;
    break;
  case CXUnaryOperator_Minus:
    node->operation = OPERATOR_MINUS;
    break;
  case CXUnaryOperator_Not:
    node->operation = OPERATOR_COMPLEMENT;
    break;
  case CXUnaryOperator_LNot:
    node->operation = OPERATOR_NOT;
    break;
  default:
    return convert_unsupported(converter, cursor, "this operator", "a model has real numbers and integers");
  }
  return node;
}

/* An implicit conversion: libclang shows it as an unexposed expression around its operand, of the same extent. */
static struct syntax *convert_implicit(struct converter *converter, CXCursor cursor) {
  struct cursors children = convert_children(converter, cursor);
  if (children.count != 1 || !convert_is_expression(children.items[0]) ||
      !clang_equalRanges(clang_getCursorExtent(cursor), clang_getCursorExtent(children.items[0])))
    return convert_unsupported(converter, cursor, "this expression", "write it in plain C");
  struct syntax *node = convert_node(converter, SYNTAX_CAST, cursor, 1);
  node->parts[0] = convert_expression(converter, children.items[0]);
  node->where = node->parts[0]->where; /* without parentheses, which may come from a macro */
  return node;
}

/* The expression is the last child; a name of the type may stand before it. */
static struct syntax *convert_last(struct converter *converter, enum syntax_kind kind, CXCursor cursor) {
  struct cursors children = convert_children(converter, cursor);
  struct syntax *node = convert_node(converter, kind, cursor, 1);
  node->parts[0] = convert_expression(converter, children.items[children.count - 1]);
  return node;
}

/* ---- Calls ---- */

static struct syntax *convert_call(struct converter *converter, CXCursor cursor) {
  CXCursor callee = clang_getCursorReferenced(cursor);
  if (clang_getCursorKind(callee) != CXCursor_FunctionDecl)
    return convert_unsupported(converter, cursor, "a call through a pointer", "call functions by their names");
  const char *name = convert_string(converter, clang_getCursorSpelling(callee));
  int count = clang_Cursor_getNumArguments(cursor);
  if (strcmp(name, "__assert_fail") == 0) count = 1; /* the rest is for a terminal */
  struct syntax *node = convert_node(converter, SYNTAX_CALL, cursor, count);
  node->text = name;
  node->function = program_function(converter->program, name);
  node->system = clang_Location_isInSystemHeader(clang_getCursorLocation(callee)) != 0;
  node->integer = clang_Cursor_getNumArguments(callee); /* what follows is variadic */
  for (int i = 0; i < count; i++)
    node->parts[i] = convert_expression(converter, clang_Cursor_getArgument(cursor, (unsigned)i));
  return node;
}

/* ---- Initial values ---- */

static struct syntax *convert_step(struct converter *converter, CXCursor cursor) {
  if (clang_getCursorKind(cursor) != CXCursor_MemberRef) return convert_expression(converter, cursor);
  struct syntax *node = convert_node(converter, SYNTAX_FIELD_STEP, cursor, 0);
  node->text = convert_string(converter, clang_getCursorSpelling(cursor));
  return node;
}

/* One item of {...}: a value, or designators and a value. */
static struct syntax *convert_item(struct converter *converter, CXCursor cursor) {
  if (clang_getCursorKind(cursor) != CXCursor_UnexposedExpr) return convert_expression(converter, cursor);
  struct cursors children = convert_children(converter, cursor);
  if (children.count < 2) return convert_expression(converter, cursor);
  struct syntax *node = convert_node(converter, SYNTAX_DESIGNATED, cursor, children.count);
  for (int i = 0; i < children.count; i++) node->parts[i] = convert_step(converter, children.items[i]);
  return node;
}

static struct syntax *convert_list(struct converter *converter, CXCursor cursor) {
  struct cursors children = convert_children(converter, cursor);
  struct syntax *node = convert_node(converter, SYNTAX_LIST, cursor, children.count);
  for (int i = 0; i < children.count; i++) node->parts[i] = convert_item(converter, children.items[i]);
  return node;
}

/* ---- All ---- */

static struct syntax *expression(struct converter *converter, CXCursor cursor) {
  switch (clang_getCursorKind(cursor)) {
  case CXCursor_IntegerLiteral:
  case CXCursor_FloatingLiteral:
  case CXCursor_CharacterLiteral:
  case CXCursor_UnaryExpr: /* sizeof, _Alignof */
    return convert_constant(converter, cursor);
  case CXCursor_StringLiteral:
    return convert_text(converter, cursor);
  case CXCursor_DeclRefExpr:
    return convert_name(converter, cursor);
  case CXCursor_MemberRefExpr:
    return convert_member(converter, cursor);
  case CXCursor_ArraySubscriptExpr:
    return convert_parts(converter, SYNTAX_INDEX, cursor, 2);
  case CXCursor_ParenExpr:
    return convert_expression(converter, convert_children(converter, cursor).items[0]);
  case CXCursor_UnaryOperator:
    return convert_unary(converter, cursor);
  case CXCursor_BinaryOperator:
  case CXCursor_CompoundAssignOperator:
    return convert_binary(converter, cursor);
  case CXCursor_ConditionalOperator:
    return convert_parts(converter, SYNTAX_CONDITIONAL, cursor, 3);
  case CXCursor_CStyleCastExpr:
    return convert_last(converter, SYNTAX_CAST, cursor);
  case CXCursor_CompoundLiteralExpr:
    return convert_last(converter, SYNTAX_COMPOUND_LITERAL, cursor);
  case CXCursor_InitListExpr:
    return convert_list(converter, cursor);
  case CXCursor_CallExpr:
    return convert_call(converter, cursor);
  case CXCursor_UnexposedExpr:
    return convert_implicit(converter, cursor);
  case CXCursor_StmtExpr:
    return convert_unsupported(converter, cursor, "a statement inside an expression", "write a function");
  case CXCursor_GenericSelectionExpr:
    return convert_unsupported(converter, cursor, "_Generic", "call the function for the type that you have");
  case CXCursor_ImaginaryLiteral:
    return convert_unsupported(converter, cursor, "a complex number", "a model has real numbers");
  default:
    return convert_unsupported(converter, cursor, "this expression", "write it in plain C");
  }
}

enum { DEEPEST = 800 };

struct syntax *convert_expression(struct converter *converter, CXCursor cursor) {
  if (converter->depth >= DEEPEST)
    return convert_unsupported(converter, cursor, "an expression nested this deep", "keep parts of it in variables");
  converter->depth++;
  struct syntax *node = expression(converter, cursor);
  converter->depth--;
  if (node->type == &ctype_void) node->type = convert_type(converter, clang_getCursorType(cursor));
  if (node->kind == SYNTAX_CAST) node->type = convert_decayed(converter, node->type);
  if (node->type->kind == CTYPE_TENSOR) converter->n_tensors++;
  return node;
}
