/* Writes that choose to keep the old number, by counters or by data: weights[i] = i != 5 ? w : weights[i]. The range
 * that is written does not show such a choice, whatever its comparison is. And writes that a condition by data leaves
 * out. */
#include <string.h>

#include "gen/audit/interp/interp.h"

struct search {
  struct interp *interp;
  struct claim *claim;
  struct function *function;
  const struct syntax *write; /* to an element */
  const char *target;         /* as it is spelled */
};

/* Whether a part of a function sets a variable after its declaration. */
struct setting {
  const struct variable *variable;
  bool found;
};

static bool find_set(struct syntax *node, void *data) {
  struct setting *setting = data;
  const bool sets = node->kind == SYNTAX_ASSIGN || node->kind == SYNTAX_INCREMENT;
  struct syntax *target = sets ? syntax_bare(node->parts[0]) : NULL;
  setting->found |= sets && target->kind == SYNTAX_VARIABLE && target->variable == setting->variable;
  return !setting->found;
}

static bool sets(struct syntax *part, const struct variable *variable) {
  struct setting setting = {variable, false};
  if (part != NULL) syntax_visit(part, find_set, &setting);
  return setting.found;
}

/* An expression below casts, and of a variable that has no other number what it begins with. */
static struct syntax *resolved(const struct search *search, struct syntax *node) {
  enum { FARTHEST = 8 };
  node = syntax_bare(node);
  for (int i = 0; i < FARTHEST && node->kind == SYNTAX_VARIABLE && node->variable->initial != NULL; i++)
    if (!node->variable->is_static && !sets(search->function->body, node->variable))
      node = syntax_bare(node->variable->initial);
  return node;
}

/* What is stored by an operation leaves the number as it is: the number itself, += 0, *= 1. */
static bool keeps(const struct search *search, struct syntax *value) {
  value = resolved(search, value);
  const enum operator_kind operation = search->write->operation;
  if (operation == OPERATOR_NONE)
    return value->type->kind != TYPE_RECORD && strcmp(interp_spell(search->interp, value), search->target) == 0;
  const double neutral = operation == OPERATOR_MULTIPLY || operation == OPERATOR_DIVIDE ? 1.0 : 0.0;
  if (value->kind == SYNTAX_REAL) return value->real == neutral;
  return value->kind == SYNTAX_INTEGER && (double)value->integer == neutral;
}

static bool is_by_data(const struct syntax *node) {
  const struct note *note = node->note;
  return note != NULL && note->seen && note->is_undecided && (note->origin & ORIGIN_DATA) != 0;
}

/* Threads of a GPU choose by data what is theirs. */
static bool is_open(const struct search *search, const struct syntax *node) {
  return interp_is_by_counters(node) || (is_by_data(node) && !search->function->is_device);
}

static void report(const struct search *search, const struct syntax *choice) {
  claim_finding(search->interp->audit, search->claim, VERDICT_BROKEN, choice->where,
                "'%s' in '%s' leaves '%s' as it was", interp_spell(search->interp, choice->parts[0]),
                search->function->name, search->target);
}

/* Choices of the stored number, and those in an arm of such a choice. Sums may have fewer terms by data. */
static void check_value(const struct search *search, struct syntax *value) {
  value = resolved(search, value);
  if (value->kind != SYNTAX_SELECT) return;
  const bool chooses =
      search->write->operation == OPERATOR_NONE ? is_open(search, value) : interp_is_by_counters(value);
  if (chooses && (keeps(search, value->parts[1]) || keeps(search, value->parts[2]))) report(search, value);
  check_value(search, value->parts[1]);
  check_value(search, value->parts[2]);
}

/* An if of whose arms one alone sets the variable whose number is stored. */
struct choosing {
  const struct search *search;
  const struct variable *variable;
};

static bool find_choice(struct syntax *node, void *data) {
  const struct choosing *choosing = data;
  if (node->kind != SYNTAX_IF || !is_open(choosing->search, node)) return true;
  const bool yes = sets(node->parts[1], choosing->variable),
             no = node->n_parts > 2 && sets(node->parts[2], choosing->variable);
  if (yes != no) report(choosing->search, node);
  return true;
}

/* The first element that an arm sets; sums may have fewer terms. */
struct first_set {
  struct syntax *target; /* NULL: none */
};

static bool find_element(struct syntax *node, void *data) {
  struct first_set *first = data;
  const bool sets_one = node->kind == SYNTAX_ASSIGN && node->operation == OPERATOR_NONE && interp_is_write(node);
  struct syntax *base = sets_one ? syntax_bare(node->parts[0]) : NULL;
  const bool is_element = base != NULL && base->kind == SYNTAX_INDEX;
  while (base != NULL && (base->kind == SYNTAX_INDEX || base->kind == SYNTAX_MEMBER))
    base = syntax_bare(base->parts[0]);
  const bool is_own = base != NULL && base->kind == SYNTAX_VARIABLE && base->type->kind == TYPE_ARRAY &&
                      !base->variable->is_parameter && !base->variable->is_static;
  if (first->target == NULL && is_element && !is_own) first->target = syntax_bare(node->parts[0]);
  return first->target == NULL;
}

static struct syntax *element_in(struct syntax *arm) {
  struct first_set first = {NULL};
  if (arm != NULL) syntax_visit(arm, find_element, &first);
  return first.target;
}

/* A loop that counts a variable around a statement. */
struct loop_search {
  const struct variable *counter;
  const struct syntax *inner; /* NULL: it was found in the loop */
};

static bool find_inner(struct syntax *node, void *data) {
  struct loop_search *search = data;
  if (node == search->inner) search->inner = NULL;
  return search->inner != NULL;
}

static bool find_loop(struct syntax *node, void *data) {
  struct loop_search *search = data;
  const bool counts = node->kind == SYNTAX_FOR && node->parts[2] != NULL && sets(node->parts[2], search->counter);
  if (counts) syntax_visit(node->parts[3], find_inner, search);
  return search->inner != NULL;
}

/* `t + 1 == count`: the last one of the positions that data counts leaves what the next step begins with. */
static bool is_last_of_some(const struct search *search, struct syntax *node, struct syntax *target) {
  const struct syntax *condition = syntax_bare(node->parts[0]);
  if (condition->kind != SYNTAX_BINARY || condition->operation != OPERATOR_EQUAL) return false;
  const struct syntax *next = syntax_bare(condition->parts[0]);
  if (next->kind != SYNTAX_BINARY || next->operation != OPERATOR_ADD) return false;
  const struct syntax *counter = syntax_bare(next->parts[0]), *one = syntax_bare(next->parts[1]);
  if (counter->kind != SYNTAX_VARIABLE || one->kind != SYNTAX_INTEGER || one->integer != 1) return false;
  struct loop_search loop = {counter->variable, node};
  syntax_visit(search->function->body, find_loop, &loop);
  return syntax_uses(target, counter->variable) == 0 && loop.inner == NULL;
}

/* A condition by data of whose arms one alone sets an element. */
static void check_arms(const struct search *search, struct syntax *node) {
  if (!is_by_data(node) || search->function->is_device) return;
  struct syntax *yes = element_in(node->parts[1]), *no = node->n_parts > 2 ? element_in(node->parts[2]) : NULL;
  if ((yes == NULL) == (no == NULL) || is_last_of_some(search, node, yes != NULL ? yes : no)) return;
  claim_finding(search->interp->audit, search->claim, VERDICT_BROKEN, node->where, "'%s' in '%s' leaves '%s' as it was",
                interp_spell(search->interp, node->parts[0]), search->function->name,
                interp_spell(search->interp, yes != NULL ? yes : no));
}

static bool check(struct syntax *node, void *data) {
  struct search search = *(const struct search *)data;
  if (node->kind == SYNTAX_IF) check_arms(&search, node);
  if (node->kind != SYNTAX_ASSIGN || !interp_is_write(node)) return true;
  search.write = node;
  search.target = interp_spell(search.interp, syntax_bare(node->parts[0]));
  check_value(&search, node->parts[1]);
  struct syntax *value = syntax_bare(node->parts[1]);
  if (value->kind != SYNTAX_VARIABLE || value->variable->initial == NULL || !keeps(&search, value->variable->initial))
    return true;
  struct choosing choosing = {&search, value->variable};
  syntax_visit(search.function->body, find_choice, &choosing);
  return true;
}

void interp_find_kept(struct interp *interp, struct claim *claim) {
  for (int i = 0; i < interp->tree->n_functions; i++) {
    struct function *function = interp->tree->functions[i];
    struct search search = {interp, claim, function, NULL, NULL};
    if (!function->role->in_step_path || function->role->is_root || function->body == NULL ||
        !interp_is_program(interp, function))
      continue;
    syntax_visit(function->body, check, &search);
  }
}
