#include "gen/c/tree.h"

#include <string.h>

const struct type type_void = {.kind = TYPE_VOID, .name = "void", .size = -1, .alignment = 1, .count = -1};
const struct type type_int = {
    .kind = TYPE_INTEGER, .name = "int", .size = 4, .alignment = 4, .is_signed = true, .count = -1};
const struct type type_float = {.kind = TYPE_REAL, .name = "float", .size = 4, .alignment = 4, .count = -1};
const struct type type_double = {.kind = TYPE_REAL, .name = "double", .size = 8, .alignment = 8, .count = -1};

struct function *tree_function(const struct tree *tree, const char *name) {
  for (int i = 0; i < tree->n_functions; i++)
    if (strcmp(tree->functions[i]->name, name) == 0) return tree->functions[i];
  return NULL;
}

struct variable *tree_variable(const struct tree *tree, const char *name) {
  for (int i = 0; i < tree->n_statics; i++)
    if (tree->statics[i]->function == NULL && strcmp(tree->statics[i]->name, name) == 0) return tree->statics[i];
  return NULL;
}

int type_member(const struct type *type, const char *name) {
  for (int i = 0; i < type->n_members; i++)
    if (strcmp(type->members[i].name, name) == 0) return i;
  return -1;
}

void syntax_visit(struct syntax *node, bool (*visit)(struct syntax *node, void *data), void *data) {
  if (node == NULL || !visit(node, data)) return;
  if (node->kind == SYNTAX_DECLARE) {
    for (int i = 0; i < node->variable->n_sizes; i++) syntax_visit(node->variable->sizes[i], visit, data);
    syntax_visit(node->variable->initial, visit, data);
  }
  for (int i = 0; i < node->n_parts; i++) syntax_visit(node->parts[i], visit, data);
}

struct syntax *syntax_bare(struct syntax *node) {
  while (node->kind == SYNTAX_CAST) node = node->parts[0];
  return node;
}

struct use_count {
  const struct variable *variable;
  int uses;
};

static bool count_use(struct syntax *node, void *data) {
  struct use_count *count = data;
  count->uses += node->kind == SYNTAX_VARIABLE && node->variable == count->variable;
  return true;
}

int syntax_uses(struct syntax *node, const struct variable *variable) {
  struct use_count count = {variable, 0};
  syntax_visit(node, count_use, &count);
  return count.uses;
}

const char *operator_spelling(enum operator_kind kind) {
  static const char *const spellings[] = {
      [OPERATOR_NONE] = "",         [OPERATOR_MULTIPLY] = "*",    [OPERATOR_DIVIDE] = "/",
      [OPERATOR_REMAINDER] = "%",   [OPERATOR_ADD] = "+",         [OPERATOR_SUBTRACT] = "-",
      [OPERATOR_LEFT] = "<<",       [OPERATOR_RIGHT] = ">>",      [OPERATOR_LESS] = "<",
      [OPERATOR_GREATER] = ">",     [OPERATOR_LESS_EQUAL] = "<=", [OPERATOR_GREATER_EQUAL] = ">=",
      [OPERATOR_EQUAL] = "==",      [OPERATOR_NOT_EQUAL] = "!=",  [OPERATOR_BIT_AND] = "&",
      [OPERATOR_BIT_XOR] = "^",     [OPERATOR_BIT_OR] = "|",      [OPERATOR_AND] = "&&",
      [OPERATOR_OR] = "||",         [OPERATOR_COMMA] = ",",       [OPERATOR_PLUS] = "+",
      [OPERATOR_MINUS] = "-",       [OPERATOR_NOT] = "!",         [OPERATOR_COMPLEMENT] = "~",
      [OPERATOR_DEREFERENCE] = "*", [OPERATOR_ADDRESS] = "&",     [OPERATOR_OTHER] = "?",
  };
  return spellings[kind];
}

enum operator_kind operator_mirrored(enum operator_kind kind) {
  switch (kind) {
  case OPERATOR_LESS:
    return OPERATOR_GREATER;
  case OPERATOR_GREATER:
    return OPERATOR_LESS;
  case OPERATOR_LESS_EQUAL:
    return OPERATOR_GREATER_EQUAL;
  case OPERATOR_GREATER_EQUAL:
    return OPERATOR_LESS_EQUAL;
  default:
    return kind;
  }
}
