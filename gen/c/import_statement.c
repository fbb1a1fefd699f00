/* Statements. */
#include <string.h>

#include "gen/c/import.h"
#include "gen/c/limit.h"

static struct syntax *import_all(struct importer *importer, enum syntax_kind kind, CXCursor cursor) {
  struct cursors children = import_children(importer, cursor);
  struct syntax *node = import_node(importer, kind, cursor, children.count);
  node->n_parts = 0;
  for (int i = 0; i < children.count; i++) {
    enum CXCursorKind child = clang_getCursorKind(children.items[i]);
    if (clang_isExpression(child) || clang_isStatement(child))
      node->parts[node->n_parts++] = import_statement(importer, children.items[i]);
  }
  return node;
}

static struct syntax *import_declaration(struct importer *importer, CXCursor cursor) {
  struct cursors children = import_children(importer, cursor);
  struct syntax *node = import_node(importer, SYNTAX_BLOCK, cursor, children.count);
  node->n_parts = 0;
  for (int i = 0; i < children.count; i++) {
    import_declared(importer, children.items[i], true);
    if (clang_getCursorKind(children.items[i]) != CXCursor_VarDecl) continue;
    struct syntax *part = import_node(importer, SYNTAX_DECLARE, children.items[i], 0);
    part->variable = import_variable(importer, children.items[i]);
    node->parts[node->n_parts++] = part;
  }
  return node;
}

static struct syntax *import_if(struct importer *importer, CXCursor cursor) {
  struct syntax *node = import_all(importer, SYNTAX_IF, cursor);
  struct syntax *whole = import_node(importer, SYNTAX_IF, cursor, 3);
  for (int i = 0; i < 3 && i < node->n_parts; i++) whole->parts[i] = node->parts[i];
  return whole;
}

/* Which of the three heads of a for are there. libclang gives the ones that are, without their position, so the tokens
 * decide. False when the tokens do not show a for, as inside a macro. */
static bool find_heads(CXTranslationUnit unit, CXCursor cursor, bool present[3]) {
  CXToken *tokens = NULL;
  unsigned count = 0;
  clang_tokenize(unit, clang_getCursorExtent(cursor), &tokens, &count);
  int depth = 0, head = 0;
  bool done = false;
  for (int i = 0; i < 3; i++) present[i] = false;
  for (unsigned i = 0; i < count && !done; i++) {
    CXString spelling = clang_getTokenSpelling(unit, tokens[i]);
    const char *text = clang_getCString(spelling);
    if (i == 0 && strcmp(text, "for") != 0) head = 4;
    bool opens = strcmp(text, "(") == 0, closes = strcmp(text, ")") == 0;
    done = closes && depth == 1;
    bool ends = depth == 1 && strcmp(text, ";") == 0;
    if (depth >= 1 && !ends && !done && head < 3) present[head] = true;
    if (ends) head++;
    depth += opens - closes;
    clang_disposeString(spelling);
  }
  clang_disposeTokens(unit, tokens, count);
  return done && head == 2;
}

static struct syntax *import_for(struct importer *importer, CXCursor cursor) {
  struct cursors children = import_children(importer, cursor);
  bool present[3] = {true, true, true};
  bool known = children.count == 4 || find_heads(importer->unit, cursor, present);
  if (!known || present[0] + present[1] + present[2] + 1 != children.count)
    return import_unknown(importer, cursor, UNKNOWN_FOR);
  struct syntax *node = import_node(importer, SYNTAX_FOR, cursor, 4);
  int next = 0;
  for (int i = 0; i < 3; i++)
    if (present[i]) node->parts[i] = import_statement(importer, children.items[next++]);
  node->parts[3] = import_statement(importer, children.items[next]);
  return node;
}

static struct syntax *import_return(struct importer *importer, CXCursor cursor) {
  struct cursors children = import_children(importer, cursor);
  struct syntax *node = import_node(importer, SYNTAX_RETURN, cursor, children.count);
  if (children.count > 0) node->parts[0] = import_expression(importer, children.items[0]);
  return node;
}

/* A statement with an attribute or a pragma before it has no kind of its own. */
static struct syntax *import_marked(struct importer *importer, CXCursor cursor) {
  struct syntax *node = import_unknown(importer, cursor, UNKNOWN_STATEMENT);
  return node->n_parts == 1 ? node->parts[0] : node;
}

static struct syntax *statement(struct importer *importer, CXCursor cursor) {
  enum CXCursorKind kind = clang_getCursorKind(cursor);
  switch (kind) {
  case CXCursor_CompoundStmt:
    return import_all(importer, SYNTAX_BLOCK, cursor);
  case CXCursor_DeclStmt:
    return import_declaration(importer, cursor);
  case CXCursor_IfStmt:
    return import_if(importer, cursor);
  case CXCursor_ForStmt:
    return import_for(importer, cursor);
  case CXCursor_WhileStmt:
    return import_all(importer, SYNTAX_WHILE, cursor);
  case CXCursor_DoStmt:
    return import_all(importer, SYNTAX_DO, cursor);
  case CXCursor_SwitchStmt:
    return import_all(importer, SYNTAX_SWITCH, cursor);
  case CXCursor_CaseStmt:
    return import_all(importer, SYNTAX_CASE, cursor);
  case CXCursor_DefaultStmt:
    return import_all(importer, SYNTAX_DEFAULT, cursor);
  case CXCursor_LabelStmt:
    return import_all(importer, SYNTAX_LABEL, cursor);
  case CXCursor_BreakStmt:
    return import_node(importer, SYNTAX_BREAK, cursor, 0);
  case CXCursor_ContinueStmt:
    return import_node(importer, SYNTAX_CONTINUE, cursor, 0);
  case CXCursor_ReturnStmt:
    return import_return(importer, cursor);
  case CXCursor_NullStmt:
    return import_node(importer, SYNTAX_EMPTY, cursor, 0);
  case CXCursor_GotoStmt:
  case CXCursor_IndirectGotoStmt:
    return import_node(importer, SYNTAX_GOTO, cursor, 0);
  case CXCursor_GCCAsmStmt:
  case CXCursor_MSAsmStmt:
    return import_node(importer, SYNTAX_ASSEMBLER, cursor, 0);
  default:
    return clang_isExpression(kind) ? import_expression(importer, cursor) : import_marked(importer, cursor);
  }
}

struct syntax *import_statement(struct importer *importer, CXCursor cursor) {
  if (importer->depth >= PARSE_DEEPEST) return import_deep(importer, cursor, UNKNOWN_DEEP_STATEMENT);
  importer->depth++;
  struct syntax *node = statement(importer, cursor);
  importer->depth--;
  return node;
}
