/* The variables of clauses, and what a loop does with one that is combined at its end. */
#include <string.h>

#include "gen/audit/interp/region.h"

struct name_search {
  const char *name;
  const struct variable *variable;
};

static bool find_name(struct syntax *node, void *data) {
  struct name_search *search = data;
  if (node->kind == SYNTAX_VARIABLE && search->variable == NULL && strcmp(node->variable->name, search->name) == 0)
    search->variable = node->variable;
  return search->variable == NULL;
}

const struct variable *interp_region_variable(struct syntax *node, const char *name) {
  struct name_search search = {name, NULL};
  syntax_visit(node, find_name, &search);
  return search.variable;
}

static bool is_variable(struct syntax *node, const struct variable *variable) {
  node = syntax_bare(node);
  while (node->kind == SYNTAX_INDEX) node = syntax_bare(node->parts[0]); /* an element of an array */
  return node->kind == SYNTAX_VARIABLE && node->variable == variable;
}

struct update_search {
  const struct variable *variable;
  const char *operation;
  int fitting; /* how often it is named in a sum */
};

static bool is_operation(enum operator_kind kind, const char *spelling) {
  if (strcmp(spelling, "+") == 0) return kind == OPERATOR_ADD || kind == OPERATOR_SUBTRACT;
  return strcmp(operator_spelling(kind), spelling) == 0;
}

/* x op= y, x = x op y, or x = y > x ? y : x for the greatest; ++ for a sum. How often a statement that is one of these
 * names x; 0: it is another. */
static int uses_of_update(struct syntax *node, const struct update_search *search) {
  node = syntax_bare(node);
  if (node->kind == SYNTAX_BINARY && node->operation == OPERATOR_COMMA)
    return uses_of_update(node->parts[0], search) + uses_of_update(node->parts[1], search);
  if (node->kind == SYNTAX_INCREMENT && is_variable(node->parts[0], search->variable))
    return is_operation(OPERATOR_ADD, search->operation);
  if (node->kind != SYNTAX_ASSIGN || !is_variable(node->parts[0], search->variable)) return 0;
  struct syntax *value = syntax_bare(node->parts[1]);
  const int inner = syntax_uses(value, search->variable);
  if (node->operation != OPERATOR_NONE) return inner == 0 && is_operation(node->operation, search->operation);
  if (value->kind == SYNTAX_BINARY && inner == 1 && is_operation(value->operation, search->operation) &&
      is_variable(value->parts[0], search->variable))
    return 2;
  if (value->kind != SYNTAX_SELECT || inner != 2) return 0;
  const struct syntax *condition = syntax_bare(value->parts[0]);
  const bool by_size = condition->kind == SYNTAX_BINARY &&
                       (condition->operation == OPERATOR_GREATER || condition->operation == OPERATOR_LESS);
  if (!by_size || !is_variable(value->parts[2], search->variable)) return 0;
  const bool first = is_variable(condition->parts[0], search->variable);
  const bool takes_greater = (condition->operation == OPERATOR_GREATER) != first;
  return strcmp(search->operation, takes_greater ? "max" : "min") == 0 ? 3 : 0;
}

/* Statements in a block, a loop or a choice, whose value nobody uses. */
static bool count_fitting(struct syntax *node, void *data) {
  struct update_search *search = data;
  const bool is_loop = node->kind == SYNTAX_FOR, chooses = node->kind == SYNTAX_IF;
  for (int i = 0; i < node->n_parts; i++) {
    const bool is_statement = node->kind == SYNTAX_BLOCK || (is_loop && (i == 2 || i == 3)) || (chooses && i > 0);
    if (is_statement && node->parts[i] != NULL) search->fitting += uses_of_update(node->parts[i], search);
  }
  return true;
}

bool interp_region_is_update(struct syntax *node, const struct variable *variable, const char *operation) {
  struct update_search search = {variable, operation, 0};
  syntax_visit(node, count_fitting, &search);
  return syntax_uses(node, variable) == search.fitting;
}
