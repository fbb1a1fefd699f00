/* Jumps that leave out writes: an element that a step passes over keeps its old number. A thread of a GPU may leave a
 * kernel where its index is beyond a bound. */
#include "gen/audit/interp/interp.h"
#include "gen/audit/program/externals.h"

static bool find_write(struct syntax *node, void *data);

/* Whether a call of the function may write memory. */
static bool may_write(struct function *function) {
  if (function->body == NULL) return external_effect(function->name) != EFFECT_ARITHMETIC;
  if (function->role->writes == 0) {
    bool found = false;
    function->role->writes = -1; /* for what calls itself */
    syntax_visit(function->body, find_write, &found);
    if (found) function->role->writes = 1;
  }
  return function->role->writes > 0;
}

bool interp_is_write(const struct syntax *node) {
  if (node->kind == SYNTAX_CALL) return node->function == NULL || may_write(node->function);
  if (node->kind != SYNTAX_ASSIGN && node->kind != SYNTAX_INCREMENT) return false;
  const struct syntax *target = syntax_bare(node->parts[0]);
  while (target->kind == SYNTAX_MEMBER) target = syntax_bare(target->parts[0]);
  return target->kind != SYNTAX_VARIABLE;
}

static bool find_write(struct syntax *node, void *data) {
  bool *found = data;
  *found = *found || interp_is_write(node);
  return !*found;
}

static bool is_loop(const struct syntax *node) {
  return node->kind == SYNTAX_FOR || node->kind == SYNTAX_WHILE || node->kind == SYNTAX_DO;
}

/* A loop or a function, and the jumps in it. */
struct scope {
  const struct syntax *loop; /* NULL: the function's body */
  bool is_device;
  const struct syntax *ends;   /* a jump out of the loop, which leaves out the iterations after it; NULL: none */
  const struct syntax *passes; /* a jump to the end, so far; NULL: none */
  const struct syntax *left;   /* such a jump with a write after it */
  bool writes;
};

static bool exceeds(struct syntax *condition) {
  condition = syntax_bare(condition);
  if (condition->kind != SYNTAX_BINARY) return false;
  if (condition->operation == OPERATOR_OR) return exceeds(condition->parts[0]) && exceeds(condition->parts[1]);
  return condition->operation == OPERATOR_GREATER || condition->operation == OPERATOR_GREATER_EQUAL;
}

/* A thread of a GPU leaves where its index is beyond a bound, or by data: no row is there, or no update. */
static bool is_beyond(const struct syntax *node) {
  const struct syntax *arm = node->parts[1];
  while (arm->kind == SYNTAX_BLOCK && arm->n_parts == 1) arm = arm->parts[0];
  const bool leaves = arm->kind == SYNTAX_RETURN || arm->kind == SYNTAX_CONTINUE || arm->kind == SYNTAX_BREAK;
  return leaves && (!interp_is_by_counters(node) || exceeds(node->parts[0]));
}

/* Where there is nothing to write: a row of a table that has no elements. */
static bool has_nothing_to_write(const struct scope *scope, const struct syntax *node) {
  if (node->kind != SYNTAX_IF || (node->n_parts > 2 && node->parts[2] != NULL)) return false;
  if (scope->is_device && is_beyond(node)) return true;
  const struct syntax *condition = syntax_bare(node->parts[0]);
  if (scope->loop != NULL || condition->kind != SYNTAX_BINARY || condition->operation != OPERATOR_EQUAL) return false;
  const struct syntax *zero = syntax_bare(condition->parts[1]);
  return node->parts[1]->kind == SYNTAX_RETURN && syntax_bare(condition->parts[0])->kind == SYNTAX_MEMBER &&
         zero->kind == SYNTAX_INTEGER && zero->integer == 0;
}

/* In the order of the text. `inner`: in a loop or a switch of its own, to which a break belongs; `loops`: in a loop. */
static void scan(struct scope *scope, const struct syntax *node, bool inner, bool loops) {
  if (node == NULL || has_nothing_to_write(scope, node)) return;
  if (interp_is_write(node)) {
    scope->writes = true;
    if (scope->passes != NULL && scope->left == NULL) scope->left = scope->passes;
  }
  const bool goes_far = node->kind == SYNTAX_RETURN || node->kind == SYNTAX_GOTO;
  const bool ends = goes_far || (node->kind == SYNTAX_BREAK && !inner);
  const bool within = loops || is_loop(node);
  for (int i = 0; i < node->n_parts; i++)
    scan(scope, node->parts[i], inner || within || node->kind == SYNTAX_SWITCH, within);
  if (node->kind == SYNTAX_DECLARE) scan(scope, node->variable->initial, inner, loops);
  if (scope->loop != NULL && ends) scope->ends = node;
  if (scope->loop == NULL ? goes_far : node->kind == SYNTAX_CONTINUE && !loops) scope->passes = node;
}

struct search {
  struct audit *audit;
  struct claim *claim;
  const struct function *function;
};

static void check(const struct search *search, const struct syntax *loop, const struct syntax *body) {
  struct scope scope = {.loop = loop, .is_device = search->function->is_device};
  scan(&scope, body, false, false);
  const struct syntax *jump = scope.ends != NULL && scope.writes ? scope.ends : scope.left;
  if (jump != NULL)
    claim_finding(search->audit, search->claim, VERDICT_BROKEN, jump->where,
                  "this jump in '%s' leaves out writes of a %s", search->function->name,
                  loop != NULL ? "loop" : "function");
}

static bool check_loop(struct syntax *node, void *data) {
  const struct search *search = data;
  if (is_loop(node)) check(search, node, node->parts[node->kind == SYNTAX_FOR ? 3 : node->kind == SYNTAX_WHILE]);
  return true;
}

void interp_find_left_out(struct interp *interp, struct claim *claim) {
  for (int i = 0; i < interp->tree->n_functions; i++) {
    struct function *function = interp->tree->functions[i];
    struct search search = {interp->audit, claim, function};
    if (!function->role->in_step_path || function->role->is_root || function->body == NULL ||
        !interp_is_program(interp, function))
      continue;
    check(&search, NULL, function->body);
    syntax_visit(function->body, check_loop, &search);
  }
}
