/* Collectives. All ranks run one program, so they reach the same ones in the same order when only constants and
 * counters say whether one is reached, and its arguments. */
#include <string.h>

#include "gen/audit/interp/external.h"
#include "gen/audit/program/device.h"
#include "gen/audit/program/externals.h"

static bool is_collective(const struct syntax *node) {
  return node->kind == SYNTAX_CALL && node->function != NULL && node->function->body == NULL &&
         external_effect(node->function->name) == EFFECT_COLLECTIVE;
}

/* Work that was recorded may have any collective. */
static bool is_launch(const struct syntax *node) {
  return node->kind == SYNTAX_CALL && node->function != NULL && strcmp(node->function->name, "accel_gpu_launch") == 0;
}

struct search {
  bool launches; /* finds launches of recorded work, too */
  bool found;
};

static bool reaches(struct function *function, bool launches);

static bool find_collective(struct syntax *node, void *data) {
  struct search *search = data;
  bool defined = node->kind == SYNTAX_CALL && node->function != NULL && node->function->body != NULL;
  search->found = search->found || is_collective(node) || (search->launches && is_launch(node)) ||
                  (defined && reaches(node->function, search->launches));
  return !search->found;
}

static bool reaches(struct function *function, bool launches) {
  int *known = launches ? &function->role->reaches_launch : &function->role->reaches_collective;
  if (*known == 0) {
    *known = -1; /* for what calls itself */
    struct search search = {.launches = launches};
    syntax_visit(function->body, find_collective, &search);
    if (search.found) *known = 1;
  }
  return *known > 0;
}

bool interp_reaches_collective(struct function *function) {
  return reaches(function, false);
}

bool interp_has_collective(struct syntax *node) {
  struct search search = {0};
  syntax_visit(node, find_collective, &search);
  return search.found;
}

/* Whether a value is of this process: of its rank, of what was set in it, or of its data. */
static bool is_own(unsigned origin) {
  return (origin & (ORIGIN_RANK | ORIGIN_CONFIG | ORIGIN_DATA)) != 0 &&
         (origin & (ORIGIN_UNTRACKED | ORIGIN_REPORTED)) == 0;
}

/* Whether the axes along which the program has ranks are known, and `axis` is none of them. */
static bool is_no_axis(const struct interp *interp, struct value axis) {
  int member = interp->config == NULL ? -1 : type_member(interp->config->type, "mesh");
  if (member < 0 || !value_is_one(axis)) return false;
  bool any = false;
  for (int i = 0; i < interp->config->type->members[member].type->count; i++)
    any = any || external_ranks(interp, value_integer(i, i)) > 1;
  return any && external_ranks(interp, axis) == 1;
}

/* What a collective has as its first argument. */
static void check_axis(struct interp *interp, const struct syntax *node, struct value axis) {
  const struct type *type = node->parts[1]->type;
  if (type == NULL || strcmp(type->name, "enum accel_axis") != 0 || !is_no_axis(interp, axis)) return;
  const char *name = "it";
  for (int i = 0; i < type->n_enumerators; i++)
    if (type->enumerators[i].value == axis.low) name = type->enumerators[i].name;
  interp_fail(interp, FAILURE_COLLECTIVE, VERDICT_BROKEN, node->parts[1], 0,
              "%s is along %s, where the program has one rank alone", node->function->name, name);
}

void interp_collective(struct interp *interp, struct syntax *node, const struct value *arguments, int count) {
  interp_note(interp, node)->seen = true;
  for (int i = 0; i < count; i++) {
    struct value value = arguments[i];
    if (value.origin == 0) continue;
    bool followed = value.kind != VALUE_POINTER || value.object >= 0; /* buffers may be anywhere */
    interp_fail(interp, FAILURE_COLLECTIVE, followed && is_own(value.origin) ? VERDICT_BROKEN : VERDICT_CANNOT_TELL,
                node->parts[i + 1], 0, "argument %d of %s, '%s', depends on %s", i + 1, node->function->name,
                interp_spell(interp, node->parts[i + 1]), interp_origin_word(value.origin));
  }
  if (count > 0) check_axis(interp, node, arguments[0]);
  interp_message(interp, node, arguments, count);
}

/* ---- The claim ---- */

struct collective_check {
  struct interp *interp;
  struct claim *claim;
  struct function *function;
  int collectives;
  const struct syntax *recording; /* the one seen last */
};

static bool find_leave(struct syntax *node, void *data) {
  struct search *search = data;
  search->found = search->found || node->kind == SYNTAX_BREAK || node->kind == SYNTAX_CONTINUE ||
                  node->kind == SYNTAX_RETURN || node->kind == SYNTAX_GOTO;
  return !search->found;
}

/* Whether a choice or a loop decides on what `find` finds in it. */
static bool decides_on(struct syntax *node, bool is_loop, bool launches,
                       bool (*find)(struct syntax *node, void *data)) {
  struct search search = {.launches = launches};
  for (int i = is_loop ? 0 : 1; i < node->n_parts; i++) syntax_visit(node->parts[i], find, &search);
  return search.found;
}

/* decides: that it chooses what a call gets which reaches a collective, as the work to launch. */
static void check_decision(struct collective_check *check, struct syntax *node, bool is_loop, bool decides) {
  const struct note *note = node->note;
  if (note == NULL || !note->seen || note->origin == 0) return;
  const char *root = check->interp->audit->root;
  bool in_step = root != NULL && check->function == tree_function(check->interp->tree, root); /* at the step's number */
  bool agreed = (in_step || !check->function->role->in_step_path) &&
                (note->origin & ~(unsigned)(ORIGIN_STEP | ORIGIN_CHOSEN)) == 0;
  bool of_all = note->is_shared_out || note->counts_steps || agreed; /* as often on each rank */
  if (of_all && (note->origin & ORIGIN_RANK) == 0) return;
  const char *what = is_loop ? "the number of iterations of this loop"
                             : arena_printf(check->interp->memory, "'%s'", interp_spell(check->interp, node->parts[0]));
  bool launches = !is_loop || (note->origin & ORIGIN_RANK) != 0; /* a loop without an end may launch on each rank */
  if (decides || decides_on(node, is_loop, launches, find_collective))
    claim_finding(check->interp->audit, check->claim, is_own(note->origin) ? VERDICT_BROKEN : VERDICT_CANNOT_TELL,
                  node->where, "%s decides on a collective, and depends on %s", what, interp_origin_word(note->origin));
  else if (!is_loop && reaches(check->function, true) && decides_on(node, is_loop, true, find_leave))
    claim_finding(check->interp->audit, check->claim, VERDICT_CANNOT_TELL, node->where,
                  "%s may pass a collective by, and depends on %s", what, interp_origin_word(note->origin));
}

/* What chooses an argument of a call that reaches a collective, as the work to launch. */
static void check_chosen(struct collective_check *check, struct syntax *argument) {
  argument = syntax_bare(argument);
  if (argument->kind != SYNTAX_SELECT) return;
  check_decision(check, argument, false, true);
  for (int i = 1; i < argument->n_parts; i++) check_chosen(check, argument->parts[i]);
}

/* A recording is of the one function that its variable ever gets, so that no rank has another under this name. */
static void check_recording(struct collective_check *check, struct syntax *node) {
  const struct device *device = check->interp->audit->device;
  struct syntax *call = node->kind == SYNTAX_ASSIGN ? syntax_bare(node->parts[1]) : node;
  if (device == NULL || !device_records(call) || call == check->recording) return;
  check->recording = call;
  const struct syntax *to = syntax_bare(node->parts[0]), *what = syntax_bare(call->parts[2]);
  bool is_named = node->kind == SYNTAX_ASSIGN && to->kind == SYNTAX_VARIABLE && what->kind == SYNTAX_FUNCTION;
  if (!is_named || device_recorded(device, to->variable) == NULL)
    claim_finding(check->interp->audit, check->claim, VERDICT_CANNOT_TELL, node->where,
                  "the recording is not of one function, which is named here and wherever the variable gets one");
}

static bool visit_decision(struct syntax *node, void *data) {
  struct collective_check *check = data;
  bool is_loop = node->kind == SYNTAX_FOR || node->kind == SYNTAX_WHILE || node->kind == SYNTAX_DO;
  bool logic = node->kind == SYNTAX_BINARY && (node->operation == OPERATOR_AND || node->operation == OPERATOR_OR);
  bool chooses = node->kind == SYNTAX_IF || node->kind == SYNTAX_SELECT || node->kind == SYNTAX_SWITCH || logic;
  if (is_loop || chooses) check_decision(check, node, is_loop, false);
  check_recording(check, node);
  struct search search = {.launches = true};
  if (node->kind == SYNTAX_CALL) find_collective(node, &search);
  for (int i = 1; search.found && i < node->n_parts; i++) check_chosen(check, node->parts[i]);
  if (!is_collective(node)) return true;
  check->collectives++;
  claim_fact(check->interp->audit, check->claim, node->where, "%s", node->function->name);
  if (node->note == NULL || !node->note->seen)
    claim_finding(check->interp->audit, check->claim, VERDICT_CANNOT_TELL, node->where,
                  "the arguments of this call of %s are not tracked", node->function->name);
  return true;
}

static bool find_direct(struct syntax *node, void *data) {
  bool *found = data;
  *found = *found || is_collective(node);
  return !*found;
}

static bool has_collectives(const struct tree *tree) {
  bool found = false;
  for (int i = 0; i < tree->n_functions && !found; i++)
    if (tree->functions[i]->role->is_used) syntax_visit(tree->functions[i]->body, find_direct, &found);
  return found;
}

static const char of_stages[] =
    "The ranks of each stage of the pipeline run this one text and come to the same collectives in the same order with "
    "the "
    "same arguments, in the step path and outside of it: constants, the stage, counters, the step's number of "
    "micro-batches and what the runtime agrees among ranks (when events are due) decide on each, constants and "
    "counters "
    "alone make up its arguments; an axis is one along which the program has ranks.";

void interp_claim_collectives(struct interp *interp) {
  const struct tree *tree = interp->tree;
  if (!has_collectives(tree)) return;
  struct claim *claim = audit_claim(
      interp->audit, "same-collectives",
      interp->n_stages > 0
          ? of_stages
          : "All ranks run this one text and come to the same collectives in the same order with the same arguments, "
            "in the "
            "step path and outside of it: constants, counters, the step's number of micro-batches and what the runtime "
            "agrees among ranks (when events are due) decide on each, constants and counters alone make up its "
            "arguments; an "
            "axis is one along which the program has ranks.");
  struct collective_check check = {.interp = interp, .claim = claim};
  for (int i = 0; i < tree->n_functions; i++) {
    check.function = tree->functions[i];
    if (check.function->role->is_used) syntax_visit(check.function->body, visit_decision, &check);
  }
  interp_add_failures(interp, claim, FAILURE_COLLECTIVE);
  claim_evidence(interp->audit, claim, "%d calls of collectives", check.collectives);
}
