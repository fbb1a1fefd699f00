/* The check before evaluation: everything outside the subset that an entry can reach, reported in one run. */
#include "gen/model/evaluate.h"
#include "gen/model/foreign.h"

#include <string.h>

struct checker {
  struct arena *arena;
  struct diagnostics *diags;
  struct {
    const struct function **items;
    int count, capacity;
  } functions; /* reached so far; those after `next` are still to be checked */
};

static void reach(struct checker *checker, const struct function *function) {
  for (int i = 0; i < checker->functions.count; i++)
    if (checker->functions.items[i] == function) return;
  ARENA_PUSH(checker->arena, checker->functions, function);
}

static void check_call(struct checker *checker, const struct syntax *node) {
  const struct function *function = node->function;
  if (model_owns(function)) {
    reach(checker, function);
    return;
  }
  const char *name = function->name;
  bool known = native_find(name) != NULL || op_function_find(name) != NULL || strcmp(name, "__assert_fail") == 0;
  if (known) return;
  diag_error(checker->diags, node->where, "a model cannot call '%s'", name);
  if (function->is_system || !foreign_help(checker->arena, name, checker->diags))
    diag_help(checker->diags, "a model is read, not run: it calls tensor functions, its own functions, and math.h");
}

static void check_type(struct checker *checker, const struct type *type, struct location where) {
  if (ctype_of(type) != CTYPE_OTHER) return;
  diag_error(checker->diags, where, "a model cannot have a value of type '%s'", type->name);
  diag_help(checker->diags, "a model has numbers, strings, enums, tensors, scopes, and structs and arrays of them");
}

static void check_node(struct checker *checker, const struct syntax *node);

static void check_outside(struct checker *checker, const struct syntax *node, const struct outside *outside) {
  diag_error(checker->diags, node->where, "a model cannot use %s", outside->what);
  diag_help(checker->diags, "%s", outside->help);
}

static void check_declaration(struct checker *checker, const struct variable *variable) {
  check_type(checker, variable->type, variable->where);
  check_node(checker, variable->initial);
  for (int i = 0; i < variable->n_sizes; i++) check_node(checker, variable->sizes[i]);
}

/* A statement where a label may occur: directly in a switch's block, or after another label. */
static void check_labelled(struct checker *checker, const struct syntax *node) {
  const struct outside *outside = subset_outside(node);
  bool label = node->kind == SYNTAX_CASE || node->kind == SYNTAX_DEFAULT;
  if (!label || outside != NULL) {
    check_node(checker, node);
    return;
  }
  if (node->kind == SYNTAX_CASE) check_node(checker, node->parts[0]);
  check_labelled(checker, node->parts[node->n_parts - 1]);
}

static void check_node(struct checker *checker, const struct syntax *node) {
  if (node == NULL) return;
  bool label = node->kind == SYNTAX_CASE || node->kind == SYNTAX_DEFAULT;
  const struct outside *outside = subset_outside(node);
  if (outside == NULL && label) outside = subset_label();
  if (outside != NULL) {
    check_outside(checker, node, outside);
    return;
  }
  if (node->kind == SYNTAX_CALL) check_call(checker, node);
  if (node->kind == SYNTAX_DECLARE) check_declaration(checker, node->variable);
  if (node->kind == SYNTAX_SWITCH) {
    check_node(checker, node->parts[0]);
    for (int i = 0; i < node->parts[1]->n_parts; i++) check_labelled(checker, node->parts[1]->parts[i]);
    return;
  }
  bool assertion = node->kind == SYNTAX_CALL && strcmp(node->function->name, "__assert_fail") == 0;
  int count = assertion ? 2 : node->n_parts; /* what it asserts; the rest is for a terminal */
  for (int i = node->kind == SYNTAX_CALL; i < count; i++) check_node(checker, node->parts[i]);
}

static void check_function(struct checker *checker, const struct function *function) {
  for (int i = 0; i < function->n_parameters; i++)
    check_type(checker, function->parameters[i]->type, function->parameters[i]->where);
  check_type(checker, function->result, function->where);
  check_node(checker, function->body);
}

bool check_reachable(struct arena *arena, const struct function *entry, struct diagnostics *diags) {
  struct checker checker = {.arena = arena, .diags = diags};
  int errors = diags->errors;
  reach(&checker, entry);
  for (int i = 0; i < checker.functions.count; i++) check_function(&checker, checker.functions.items[i]);
  return diags->errors == errors;
}
