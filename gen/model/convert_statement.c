/* Statements. */
#include "gen/model/convert.h"

#include <string.h>

static struct syntax *convert_all(struct converter *converter, enum syntax_kind kind, CXCursor cursor) {
  struct cursors children = convert_children(converter, cursor);
  struct syntax *node = convert_node(converter, kind, cursor, children.count);
  for (int i = 0; i < children.count; i++) node->parts[i] = convert_statement(converter, children.items[i]);
  return node;
}

/* A declaration statement: a block without a scope of its own is not needed, since every variable has its slot. */
static struct syntax *convert_declaration(struct converter *converter, CXCursor cursor) {
  struct cursors children = convert_children(converter, cursor);
  struct syntax *node = convert_node(converter, SYNTAX_BLOCK, cursor, children.count);
  node->n_parts = 0;
  for (int i = 0; i < children.count; i++) {
    if (clang_getCursorKind(children.items[i]) != CXCursor_VarDecl) continue;
    struct syntax *part = convert_node(converter, SYNTAX_DECLARE, children.items[i], 0);
    part->variable = convert_variable(converter, children.items[i]);
    node->parts[node->n_parts++] = part;
  }
  return node;
}

static struct syntax *convert_if(struct converter *converter, CXCursor cursor) {
  struct cursors children = convert_children(converter, cursor);
  struct syntax *node = convert_node(converter, SYNTAX_IF, cursor, 3);
  node->parts[0] = convert_expression(converter, children.items[0]);
  for (int i = 1; i < children.count && i < 3; i++) node->parts[i] = convert_statement(converter, children.items[i]);
  return node;
}

/* Which of the three heads of a for are there. libclang gives the ones that are, without their place, so the tokens
 * decide. False when the tokens do not show a for, as inside a macro. */
static bool find_heads(CXTranslationUnit unit, CXCursor cursor, bool present[3]) {
  CXToken *tokens = NULL;
  unsigned count = 0;
  clang_tokenize(unit, clang_getCursorExtent(cursor), &tokens, &count);
  int depth = 0, head = 0;
  bool done = false;
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

static void mark_loop(struct converter *converter, struct syntax *loop, int tensors_before) {
  loop->tensors = converter->n_tensors > tensors_before;
}

static struct syntax *convert_for(struct converter *converter, CXCursor cursor) {
  struct cursors children = convert_children(converter, cursor);
  bool present[3] = {children.count == 4, children.count == 4, children.count == 4};
  bool known = children.count == 4 || find_heads(clang_Cursor_getTranslationUnit(cursor), cursor, present);
  if (!known || present[0] + present[1] + present[2] + 1 != children.count)
    return convert_unsupported(converter, cursor, "a for without all of its parts inside a macro",
                               "write the loop outside the macro");
  struct syntax *node = convert_node(converter, SYNTAX_FOR, cursor, 4);
  int before = converter->n_tensors, next = 0;
  for (int i = 0; i < 3; i++)
    if (present[i]) node->parts[i] = convert_statement(converter, children.items[next++]);
  node->parts[3] = convert_statement(converter, children.items[next]);
  mark_loop(converter, node, before);
  return node;
}

static struct syntax *convert_loop(struct converter *converter, enum syntax_kind kind, CXCursor cursor) {
  int before = converter->n_tensors;
  struct syntax *node = convert_all(converter, kind, cursor);
  mark_loop(converter, node, before);
  return node;
}

/* ---- switch ---- */

static struct syntax *convert_label(struct converter *converter, CXCursor cursor);

static bool is_label(CXCursor cursor) {
  return clang_getCursorKind(cursor) == CXCursor_CaseStmt || clang_getCursorKind(cursor) == CXCursor_DefaultStmt;
}

/* A statement where a label may stand: directly in a switch's block, or behind another label. */
static struct syntax *convert_labelled(struct converter *converter, CXCursor cursor) {
  return is_label(cursor) ? convert_label(converter, cursor) : convert_statement(converter, cursor);
}

static struct syntax *convert_label(struct converter *converter, CXCursor cursor) {
  struct cursors children = convert_children(converter, cursor);
  if (clang_getCursorKind(cursor) == CXCursor_DefaultStmt) {
    struct syntax *node = convert_node(converter, SYNTAX_DEFAULT, cursor, 1);
    node->parts[0] = convert_labelled(converter, children.items[0]);
    return node;
  }
  if (children.count != 2)
    return convert_unsupported(converter, cursor, "a range of cases", "write one case for each value, or an if");
  struct syntax *node = convert_node(converter, SYNTAX_CASE, cursor, 2);
  node->parts[0] = convert_expression(converter, children.items[0]);
  node->parts[1] = convert_labelled(converter, children.items[1]);
  return node;
}

static struct syntax *convert_switch(struct converter *converter, CXCursor cursor) {
  struct cursors children = convert_children(converter, cursor);
  if (children.count != 2 || clang_getCursorKind(children.items[1]) != CXCursor_CompoundStmt)
    return convert_unsupported(converter, cursor, "a switch without a block", "write switch (value) { case ...: ... }");
  struct syntax *node = convert_node(converter, SYNTAX_SWITCH, cursor, 2);
  node->parts[0] = convert_expression(converter, children.items[0]);
  struct cursors body = convert_children(converter, children.items[1]);
  node->parts[1] = convert_node(converter, SYNTAX_BLOCK, children.items[1], body.count);
  for (int i = 0; i < body.count; i++) node->parts[1]->parts[i] = convert_labelled(converter, body.items[i]);
  return node;
}

/* ---- All ---- */

static struct syntax *convert_return(struct converter *converter, CXCursor cursor) {
  struct cursors children = convert_children(converter, cursor);
  struct syntax *node = convert_node(converter, SYNTAX_RETURN, cursor, children.count);
  if (children.count > 0) node->parts[0] = convert_expression(converter, children.items[0]);
  return node;
}

static struct syntax *statement(struct converter *converter, CXCursor cursor) {
  switch (clang_getCursorKind(cursor)) {
  case CXCursor_CompoundStmt:
    return convert_all(converter, SYNTAX_BLOCK, cursor);
  case CXCursor_DeclStmt:
    return convert_declaration(converter, cursor);
  case CXCursor_IfStmt:
    return convert_if(converter, cursor);
  case CXCursor_ForStmt:
    return convert_for(converter, cursor);
  case CXCursor_WhileStmt:
    return convert_loop(converter, SYNTAX_WHILE, cursor);
  case CXCursor_DoStmt:
    return convert_loop(converter, SYNTAX_DO, cursor);
  case CXCursor_SwitchStmt:
    return convert_switch(converter, cursor);
  case CXCursor_BreakStmt:
    return convert_node(converter, SYNTAX_BREAK, cursor, 0);
  case CXCursor_ContinueStmt:
    return convert_node(converter, SYNTAX_CONTINUE, cursor, 0);
  case CXCursor_ReturnStmt:
    return convert_return(converter, cursor);
  case CXCursor_NullStmt:
    return convert_node(converter, SYNTAX_EMPTY, cursor, 0);
  case CXCursor_CaseStmt:
  case CXCursor_DefaultStmt:
    return convert_unsupported(converter, cursor, "a case inside another statement of the switch",
                               "put each case directly into the block of the switch");
  case CXCursor_GotoStmt:
  case CXCursor_IndirectGotoStmt:
  case CXCursor_LabelStmt:
    return convert_unsupported(converter, cursor, "goto", "write a loop with break, or return from a function");
  case CXCursor_GCCAsmStmt:
  case CXCursor_MSAsmStmt:
    return convert_unsupported(converter, cursor, "assembler", "a model is read, not run: use tensor functions");
  default:
    break;
  }
  if (convert_is_expression(cursor)) return convert_expression(converter, cursor);
  return convert_unsupported(converter, cursor, "this statement", "write it with if, for, while, switch and calls");
}

enum { DEEPEST = 800 };

struct syntax *convert_statement(struct converter *converter, CXCursor cursor) {
  if (converter->depth >= DEEPEST)
    return convert_unsupported(converter, cursor, "a statement nested this deep", "take parts out into functions");
  converter->depth++;
  struct syntax *node = statement(converter, cursor);
  converter->depth--;
  return node;
}
