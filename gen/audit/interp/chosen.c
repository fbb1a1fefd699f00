/* Writes that a condition by counters leaves out: an element that a step passes over keeps its old number. A condition
 * that bounds an index is seen in the range that is written; another one, such as `i != 5`, is not. */
#include <string.h>

#include "gen/audit/interp/interp.h"
#include "gen/audit/program/device.h"

static bool is_relation(const struct syntax *node) {
  return node->kind == SYNTAX_BINARY && node->operation >= OPERATOR_LESS && node->operation <= OPERATOR_NOT_EQUAL;
}

bool interp_is_bound(struct syntax *condition, bool truth) {
  condition = syntax_bare(condition);
  if (condition->kind == SYNTAX_INTEGER) return true;
  if (condition->kind != SYNTAX_BINARY) return false;
  if (condition->operation == (truth ? OPERATOR_AND : OPERATOR_OR))
    return interp_is_bound(condition->parts[0], truth) && interp_is_bound(condition->parts[1], truth);
  return is_relation(condition) && condition->operation != OPERATOR_EQUAL &&
         condition->operation != OPERATOR_NOT_EQUAL && condition->parts[0]->type->kind == TYPE_INTEGER;
}

bool interp_is_program(const struct interp *interp, const struct function *function) {
  const struct device *device = interp->audit->device;
  return interp_is_own(interp, function->where) || (device != NULL && strcmp(function->where.file, device->file) == 0);
}

struct search {
  struct interp *interp;
  struct claim *claim;
  const struct function *function;
};

static bool is_own_array(struct syntax *argument) {
  argument = syntax_bare(argument);
  if (argument->kind != SYNTAX_VARIABLE) return false;
  const struct variable *variable = argument->variable;
  return variable->type->kind == TYPE_ARRAY && variable->function != NULL && !variable->is_parameter &&
         !variable->is_static && !variable->is_external;
}

/* A call of a function of the headers, which reaches what it is given alone: arrays of the caller's own. They are as a
 * variable is, from which something is computed. */
static bool writes_own_arrays(const struct interp *interp, const struct syntax *node) {
  if (node->kind != SYNTAX_CALL || node->function == NULL || node->function->body == NULL ||
      interp_is_program(interp, node->function))
    return false;
  for (int i = 1; i < node->n_parts; i++) {
    const enum type_kind kind = node->parts[i]->type->kind;
    if ((kind == TYPE_POINTER || kind == TYPE_ARRAY) && !is_own_array(node->parts[i])) return false;
  }
  return true;
}

struct target_search {
  const struct interp *interp;
  struct syntax *first; /* what writes first; NULL: nothing */
};

static bool find_target(struct syntax *node, void *data) {
  struct target_search *search = data;
  if (search->first == NULL && interp_is_write(node) && !writes_own_arrays(search->interp, node)) search->first = node;
  return search->first == NULL;
}

/* What an arm writes first. */
static struct syntax *write_in(const struct interp *interp, struct syntax *arm) {
  struct target_search search = {interp, NULL};
  if (arm != NULL) syntax_visit(arm, find_target, &search);
  return search.first;
}

struct shared_search {
  struct syntax *other;
  bool found;
};

static bool find_shared(struct syntax *node, void *data) {
  struct shared_search *search = data;
  search->found |= node->kind == SYNTAX_VARIABLE && syntax_uses(search->other, node->variable) > 0;
  return !search->found;
}

/* Whether a condition is about what a write's place depends on. Threads of a GPU choose one of them to write. */
static bool concerns(struct syntax *condition, struct syntax *write) {
  struct shared_search search = {write->parts[0], false};
  if (write->kind == SYNTAX_CALL) return true;
  syntax_visit(condition, find_shared, &search);
  return search.found;
}

bool interp_is_by_counters(const struct syntax *node) {
  const struct note *note = node->note;
  return note != NULL && note->seen && note->is_undecided && (note->origin & ~(unsigned)ORIGIN_CHOSEN) == 0;
}

/* One number, which one of the iterations writes: next[0] = x. */
static bool has_one_place(const struct syntax *write) {
  const struct syntax *target = syntax_bare(write->parts[0]);
  return write->kind != SYNTAX_CALL && target->kind == SYNTAX_INDEX &&
         syntax_bare(target->parts[0])->kind == SYNTAX_VARIABLE &&
         syntax_bare(target->parts[1])->kind == SYNTAX_INTEGER;
}

/* i % 4 == 0: one of the threads that share something writes it. */
static bool takes_turns(struct syntax *condition) {
  condition = syntax_bare(condition);
  if (condition->kind != SYNTAX_BINARY || condition->operation != OPERATOR_EQUAL) return false;
  const struct syntax *of = syntax_bare(condition->parts[0]);
  return of->kind == SYNTAX_BINARY && of->operation == OPERATOR_REMAINDER;
}

/* A row of a table, which has its own way of being written. */
static bool is_of_row(struct syntax *condition) {
  condition = syntax_bare(condition);
  return is_relation(condition) && syntax_bare(condition->parts[0])->kind == SYNTAX_MEMBER &&
         syntax_bare(condition->parts[1])->kind == SYNTAX_INTEGER;
}

static bool leaves_out(struct interp *interp, const struct function *function, struct syntax *node) {
  const bool logic = node->kind == SYNTAX_BINARY && (node->operation == OPERATOR_AND || node->operation == OPERATOR_OR);
  const bool chooses = node->kind == SYNTAX_IF || node->kind == SYNTAX_SELECT;
  if (!interp_is_by_counters(node) || is_of_row(node->parts[0])) return false;
  if (logic) return write_in(interp, node->parts[1]) != NULL;
  if (node->kind == SYNTAX_SWITCH) return write_in(interp, node->parts[node->n_parts - 1]) != NULL;
  struct syntax *yes = chooses ? write_in(interp, node->parts[1]) : NULL;
  struct syntax *no = chooses && node->n_parts > 2 ? write_in(interp, node->parts[2]) : NULL;
  if (yes == NULL && no == NULL) return false;
  if (yes != NULL && no != NULL) return strcmp(interp_spell(interp, yes), interp_spell(interp, no)) != 0;
  struct syntax *write = yes != NULL ? yes : no;
  if (has_one_place(write)) return false;
  if (function->is_device && (takes_turns(node->parts[0]) || !concerns(node->parts[0], write))) return false;
  return !interp_is_bound(node->parts[0], yes != NULL);
}

static bool check(struct syntax *node, void *data) {
  const struct search *search = data;
  if (leaves_out(search->interp, search->function, node))
    claim_finding(search->interp->audit, search->claim, VERDICT_BROKEN, node->where, "'%s' in '%s' leaves out writes",
                  interp_spell(search->interp, node->parts[0]), search->function->name);
  return true;
}

void interp_find_chosen(struct interp *interp, struct claim *claim) {
  for (int i = 0; i < interp->tree->n_functions; i++) {
    struct function *function = interp->tree->functions[i];
    struct search search = {interp, claim, function};
    if (!function->role->in_step_path || function->role->is_root || function->body == NULL ||
        !interp_is_program(interp, function))
      continue;
    syntax_visit(function->body, check, &search);
  }
}
