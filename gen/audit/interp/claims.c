/* The claims that the interpreter supports: branches, loops, bounds, order, overlap. */
#include "gen/audit/interp/interp.h"
#include "gen/audit/program/device.h"
#include "gen/audit/program/externals.h"

/* ---- Branches ---- */

struct branch_check {
  struct interp *interp;
  struct claim *claim;
  struct function *function;
  int loops, shape_choices, numeric_choices;
};

static bool does_tensor_work(struct function *function);

/* Loops, and calls of what works on tensors. */
static bool find_tensor_work(struct syntax *node, void *data) {
  bool *found = data;
  bool loop = node->kind == SYNTAX_FOR || node->kind == SYNTAX_WHILE || node->kind == SYNTAX_DO;
  bool call = node->kind == SYNTAX_CALL && node->function != NULL && does_tensor_work(node->function);
  *found = *found || loop || call;
  return !*found;
}

static bool does_tensor_work(struct function *function) {
  if (function->role->does_tensor_work == 0) {
    enum effect effect = function->body == NULL ? external_effect(function->name) : EFFECT_ARITHMETIC;
    bool found = effect == EFFECT_LIBRARY || effect == EFFECT_COLLECTIVE || interp_is_kernel(function);
    function->role->does_tensor_work = -1; /* for what calls itself */
    syntax_visit(function->body, find_tensor_work, &found);
    if (found) function->role->does_tensor_work = 1;
  }
  return function->role->does_tensor_work > 0;
}

static bool find_exit(struct syntax *node, void *data) {
  bool *found = data;
  *found = *found || node->kind == SYNTAX_BREAK || node->kind == SYNTAX_CONTINUE || node->kind == SYNTAX_GOTO ||
           node->kind == SYNTAX_SWITCH;
  return !*found;
}

static bool find_return(struct syntax *node, void *data) {
  bool *found = data;
  *found = *found || node->kind == SYNTAX_RETURN;
  return !*found;
}

/* Whether the arms of a choice only compute and assign. A function without work on tensors may end early: it skips
 * none. */
static bool only_assigns(struct function *function, struct syntax *node) {
  bool work = false, out = false, returns = false;
  for (int i = 1; i < node->n_parts; i++) {
    syntax_visit(node->parts[i], find_tensor_work, &work);
    syntax_visit(node->parts[i], find_exit, &out);
    syntax_visit(node->parts[i], find_return, &returns);
  }
  return !work && !out && !(returns && does_tensor_work(function));
}

static void count_choice(struct branch_check *check, const struct syntax *node, unsigned origin) {
  if (origin == 0) {
    check->shape_choices++;
    return;
  }
  check->numeric_choices++;
  claim_fact(check->interp->audit, check->claim, node->where, "a choice by %s: '%s'", interp_origin_word(origin),
             interp_spell(check->interp, node->parts[0]));
}

static void check_choice(struct branch_check *check, struct syntax *node) {
  struct audit *audit = check->interp->audit;
  const struct note *note = node->note;
  unsigned origin = note == NULL || !note->seen ? 0 : note->origin;
  const char *condition = interp_spell(check->interp, node->parts[0]);
  bool by_rank = (origin & ORIGIN_RANK) != 0 && node->kind == SYNTAX_SELECT &&
                 check->function->is_device; /* how much of something it has */
  if (!by_rank && (origin & (ORIGIN_CONFIG | ORIGIN_DATA | ORIGIN_UNTRACKED)) ==
                      ORIGIN_CONFIG) { /* with data, it is a number to compare with */
    claim_finding(audit, check->claim, VERDICT_BROKEN, node->where, "'%s' depends on %s", condition,
                  interp_origin_word(origin));
    return;
  }
  bool in_step = audit->root != NULL && check->function == tree_function(check->interp->tree, audit->root);
  bool branches = node->kind == SYNTAX_IF || node->kind == SYNTAX_SWITCH;
  /* Threads of a device diverge; which of them reach a barrier is not checked. */
  if (branches && origin != 0 && !in_step && !check->function->is_device && !only_assigns(check->function, node)) {
    claim_finding(audit, check->claim, origin & ORIGIN_UNTRACKED ? VERDICT_CANNOT_TELL : VERDICT_BROKEN, node->where,
                  "'%s' branches on %s", condition, interp_origin_word(origin));
    return;
  }
  count_choice(check, node, origin);
}

static bool visit_branch(struct syntax *node, void *data) {
  struct branch_check *check = data;
  bool logic = node->kind == SYNTAX_BINARY && (node->operation == OPERATOR_AND || node->operation == OPERATOR_OR);
  if (node->kind == SYNTAX_IF || node->kind == SYNTAX_SELECT || node->kind == SYNTAX_SWITCH || logic)
    check_choice(check, node);
  check->loops += node->kind == SYNTAX_FOR || node->kind == SYNTAX_WHILE || node->kind == SYNTAX_DO;
  return true;
}

static void interp_step_path(struct branch_check *check, bool (*visit)(struct syntax *node, void *data)) {
  for (int i = 0; i < check->interp->tree->n_functions; i++) {
    check->function = check->interp->tree->functions[i];
    if (check->function->role->in_step_path) syntax_visit(check->function->body, visit, check);
  }
}

static void claim_branches(struct interp *interp) {
  struct claim *claim =
      audit_claim(interp->audit, "no-configuration-branch",
                  "Every branch of the step path is a loop, or a choice by counters and constants, or "
                  "a choice between numbers, or is in the function of the step itself.");
  struct branch_check check = {.interp = interp, .claim = claim};
  interp_step_path(&check, visit_branch);
  claim_evidence(interp->audit, claim, "%d loops, %d choices by counters, %d between numbers", check.loops,
                 check.shape_choices, check.numeric_choices);
}

/* ---- Failures ---- */

static const struct {
  const char *id, *sentence;
} sentences[FAILURE_KINDS] = {
    [FAILURE_BOUNDS] = {"in-bounds", "Every access of the step path is inside its array."},
    [FAILURE_UNWRITTEN] = {"written-before-read", "A step reads nothing that it did not write before, but for the "
                                                  "weights and what is listed as state."},
    [FAILURE_PARTIAL] = {"whole-arrays",
                         "Every kernel works on each of its arrays up to the extent that it declares, and no "
                         "jump, condition or choice leaves out a write."},
    [FAILURE_OVERLAP] = {"no-overlap", "No two buffers share memory while both are in use."},
    [FAILURE_RACE] = {"no-race",
                      "No two iterations of a loop that OpenMP divides among threads or lanes, and no two "
                      "threads of a team between barriers, touch the same memory while one of them writes it. "
                      "No two threads of a GPU's block do so between barriers, and no two blocks of a launch."},
    [FAILURE_ALIGNMENT] = {"aligned", "Every access of the step path is aligned as its type requires."},
    [FAILURE_OUTSIDE] = {"known-writes",
                         "Outside of the step nothing writes the weights and what is listed as state, but "
                         "the runtime, functions that exchange it among ranks, and the start, which "
                         "sets states of one number."},
    [FAILURE_ADDRESS_SPACE] = {"address-spaces",
                               "The host does not touch the device's memory itself, nor a kernel the host's."},
    [FAILURE_OVERFLOW] = {"no-overflow",
                          "No arithmetic on counters and constants leaves the range of its type, no shift "
                          "its bits, and nothing is divided by zero."},
};

static void add_failures(struct interp *interp, struct claim *claim, enum failure_kind kind,
                         const struct failure *failures, int count) {
  for (int i = 0; i < count; i++)
    if (failures[i].kind == kind)
      claim_finding(interp->audit, claim, failures[i].verdict, failures[i].where, "%s", failures[i].message);
}

/* What is read and written through a pointer that is not known may be any buffer. */
static void add_untracked(struct interp *interp, struct claim *claim, enum failure_kind kind) {
  if (interp->untracked == NULL || (kind != FAILURE_UNWRITTEN && kind != FAILURE_OVERLAP && kind != FAILURE_ALIGNMENT))
    return;
  claim_finding(interp->audit, claim, VERDICT_CANNOT_TELL, interp->untracked->where,
                "what '%s' reaches is not known: it may be any memory", interp_spell(interp, interp->untracked));
}

void interp_add_failures(struct interp *interp, struct claim *claim, enum failure_kind kind) {
  add_failures(interp, claim, kind, interp->kernel_failures.items, interp->kernel_failures.count);
  add_failures(interp, claim, kind, interp->failures.items, interp->failures.count);
}

/* ---- Loops ---- */

struct loop_check {
  struct branch_check base;
  int64_t longest;
};

static bool visit_loop(struct syntax *node, void *data) {
  struct branch_check *check = data;
  struct loop_check *loops = data;
  if (node->kind != SYNTAX_FOR && node->kind != SYNTAX_WHILE && node->kind != SYNTAX_DO) return true;
  const struct note *note = node->note;
  struct audit *audit = check->interp->audit;
  if (note == NULL || !note->seen) return true;
  check->loops++;
  if (note->iterations > loops->longest) loops->longest = note->iterations;
  if (note->counts_steps)
    claim_fact(audit, check->claim, node->where, "an iteration for each step of the whole run");
  else if (note->is_shared_out)
    claim_fact(audit, check->claim, node->where, "an iteration for each micro-batch that the runtime gives the step");
  else
    claim_fact(audit, check->claim, node->where, "%lld iterations", (long long)note->iterations);
  return true;
}

static void claim_loops(struct interp *interp) {
  struct claim *claim =
      audit_claim(interp->audit, "bounded-loops",
                  "Every loop of the step path is bounded by constants and the counters of loops around it, and no "
                  "counter wraps before its loop ends.");
  struct loop_check check = {.base = {.interp = interp, .claim = claim}};
  interp_step_path(&check.base, visit_loop);
  interp_add_failures(interp, claim, FAILURE_LOOP);
  claim_evidence(interp->audit, claim, "%d loops, the longest of %lld iterations", check.base.loops,
                 (long long)check.longest);
}

void interp_claims(struct interp *interp) {
  claim_branches(interp);
  claim_loops(interp);
  interp_claim_collectives(interp);
  interp_claim_stages(interp);
  interp_claim_ring(interp);
  interp_claim_transfers(interp);
  for (int kind = FAILURE_BOUNDS; kind < FAILURE_KINDS; kind++) {
    if (kind == FAILURE_ADDRESS_SPACE && interp->device == NULL) continue;
    struct claim *claim = audit_claim(interp->audit, sentences[kind].id, sentences[kind].sentence);
    interp_add_failures(interp, claim, (enum failure_kind)kind);
    add_untracked(interp, claim, (enum failure_kind)kind);
    if (kind == FAILURE_PARTIAL) interp_find_left_out(interp, claim);
    if (kind == FAILURE_PARTIAL) interp_find_chosen(interp, claim);
    if (kind == FAILURE_PARTIAL) interp_find_kept(interp, claim);
    if (kind == FAILURE_RACE)
      claim_evidence(interp->audit, claim, "%d regions, %d accesses", interp->n_regions, interp->n_listed);
    else if (interp->device != NULL)
      claim_evidence(interp->audit, claim, "%d accesses, %d launches", interp->n_accesses,
                     interp->audit->device->n_launches);
    else
      claim_evidence(interp->audit, claim, "%d accesses, %d kernels", interp->n_accesses, interp->n_kernels);
  }
}
