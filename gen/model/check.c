/* The check before evaluation: everything outside the subset that an entry can reach, reported in one run. */
#include "gen/model/evaluate.h"

#include <string.h>

struct checker {
  struct arena *arena;
  struct diagnostics *diags;
  struct {
    const struct function **items;
    int count, capacity;
  } functions; /* reached so far; those behind `next` are still to be checked */
};

static void reach(struct checker *checker, const struct function *function) {
  for (int i = 0; i < checker->functions.count; i++)
    if (checker->functions.items[i] == function) return;
  ARENA_PUSH(checker->arena, checker->functions, function);
}

const char *model_similar_function(struct arena *arena, const char *name) {
  const char **names = NULL;
  int count = 0, capacity = 0;
  for (int i = 0; i < op_file_count; i++) {
    const struct op_function *function = op_files[i]->functions;
    for (; function != NULL && function->name != NULL; function++) {
      names = arena_grow(arena, names, count, &capacity, sizeof *names);
      names[count++] = function->name;
    }
  }
  return nearest_word(name, names, count);
}

static void check_call(struct checker *checker, const struct syntax *node) {
  if (node->function != NULL) {
    reach(checker, node->function);
    return;
  }
  bool known = native_find(node->text) != NULL || op_function_find(node->text) != NULL ||
               strcmp(node->text, "__assert_fail") == 0;
  if (known) return;
  diag_error(checker->diags, node->where, "a model cannot call '%s'", node->text);
  const char *similar = node->system ? NULL : model_similar_function(checker->arena, node->text);
  if (similar != NULL)
    diag_help(checker->diags, "did you mean '%s'?", similar);
  else
    diag_help(checker->diags, "a model is read, not run: it calls tensor functions, its own functions, and math.h");
}

static void check_type(struct checker *checker, const struct ctype *type, struct location where) {
  if (type->kind != CTYPE_OTHER) return;
  diag_error(checker->diags, where, "a model cannot have a value of type '%s'", type->name);
  diag_help(checker->diags, "a model has numbers, strings, enums, tensors, scopes, and structs and arrays of them");
}

static void check_node(struct checker *checker, const struct syntax *node) {
  if (node == NULL) return;
  if (node->kind == SYNTAX_UNSUPPORTED) {
    diag_error(checker->diags, node->where, "a model cannot use %s", node->text);
    if (node->help != NULL) diag_help(checker->diags, "%s", node->help);
    return;
  }
  if (node->kind == SYNTAX_CALL) check_call(checker, node);
  if (node->kind == SYNTAX_DECLARE) {
    check_type(checker, node->variable->type, node->variable->where);
    check_node(checker, node->variable->initial);
    for (int i = 0; i < node->variable->n_sizes; i++) check_node(checker, node->variable->sizes[i]);
  }
  for (int i = 0; i < node->n_parts; i++) check_node(checker, node->parts[i]);
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
