/* Variables of static storage that a single statement sets, such as what differs by rank: they keep the range
 * that they were set to. */
#include "gen/audit/interp/interp.h"

struct setting_search {
  const struct variable *variable;
  int settings;
  bool is_elsewhere; /* its address is taken */
};

static bool find_setting(struct syntax *node, void *data) {
  struct setting_search *search = data;
  bool sets = node->kind == SYNTAX_ASSIGN || node->kind == SYNTAX_INCREMENT;
  bool points = node->kind == SYNTAX_UNARY && node->operation == OPERATOR_ADDRESS;
  if (!sets && !points) return true;
  const struct syntax *target = syntax_bare(node->parts[0]);
  if (target->kind != SYNTAX_VARIABLE || target->variable != search->variable) return true;
  search->settings += sets && node->kind == SYNTAX_ASSIGN && node->operation == OPERATOR_NONE ? 1 : 2;
  search->is_elsewhere |= points;
  return true;
}

static bool is_set_once(const struct tree *tree, const struct variable *variable) {
  struct setting_search search = {.variable = variable};
  for (int i = 0; i < tree->n_functions; i++)
    if (tree->functions[i]->body != NULL) syntax_visit(tree->functions[i]->body, find_setting, &search);
  return search.settings == 1 && !search.is_elsewhere;
}

bool interp_set_once(struct interp *interp, int object, struct value *value) {
  struct object *at = &interp->objects[object];
  const struct value *set = &interp->states[object].value;
  if (at->is_set_by_steps || at->variable->initial != NULL || at->variable->is_external) return false;
  if (at->type->kind != TYPE_INTEGER || set->kind != VALUE_INTEGER) return false;
  if (at->once == 0) at->once = is_set_once(interp->tree, at->variable) ? 1 : -1;
  if (at->once < 0) return false;
  *value = value_join(*set, value_integer(0, 0)); /* which it is until then */
  value->blame = BLAME_ALWAYS;
  if (set->origin == ORIGIN_STAGE && set->low == set->high) *value = *set; /* and then it has been set */
  return true;
}
