/* The claims that the walk supports: branches, loops, bounds, order, overlap. */
#include "gen/audit/device.h"
#include "gen/audit/externals.h"
#include "gen/audit/walk.h"

/* ---- Branches ---- */

struct branch_check {
  struct walk *walk;
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
    bool found = effect == EFFECT_PRODUCT || effect == EFFECT_COLLECTIVE || walk_is_kernel(function);
    function->role->does_tensor_work = -1; /* for what calls itself */
    syntax_walk(function->body, find_tensor_work, &found);
    if (found) function->role->does_tensor_work = 1;
  }
  return function->role->does_tensor_work > 0;
}

static bool find_way_out(struct syntax *node, void *data) {
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
    syntax_walk(node->parts[i], find_tensor_work, &work);
    syntax_walk(node->parts[i], find_way_out, &out);
    syntax_walk(node->parts[i], find_return, &returns);
  }
  return !work && !out && !(returns && does_tensor_work(function));
}

static void count_choice(struct branch_check *check, const struct syntax *node, unsigned origin) {
  if (origin == 0) {
    check->shape_choices++;
    return;
  }
  check->numeric_choices++;
  claim_fact(check->walk->audit, check->claim, node->where, "a choice by %s: '%s'", walk_origin_word(origin),
             walk_spell(check->walk, node->parts[0]));
}

static void check_choice(struct branch_check *check, struct syntax *node) {
  struct audit *audit = check->walk->audit;
  const struct note *note = node->note;
  unsigned origin = note == NULL || !note->seen ? 0 : note->origin;
  const char *condition = walk_spell(check->walk, node->parts[0]);
  bool by_rank = (origin & ORIGIN_RANK) != 0 && node->kind == SYNTAX_SELECT &&
                 check->function->is_device; /* how much of something it has */
  if (!by_rank && (origin & (ORIGIN_CONFIG | ORIGIN_DATA | ORIGIN_UNFOLLOWED)) ==
                      ORIGIN_CONFIG) { /* with data, it is a number to compare with */
    claim_finding(audit, check->claim, VERDICT_BROKEN, node->where, "'%s' depends on %s", condition,
                  walk_origin_word(origin));
    return;
  }
  bool border = audit->root != NULL && check->function == tree_function(check->walk->tree, audit->root);
  bool branches = node->kind == SYNTAX_IF || node->kind == SYNTAX_SWITCH;
  /* A thread of a device goes its own way; who reaches a barrier is not looked at. */
  if (branches && origin != 0 && !border && !check->function->is_device && !only_assigns(check->function, node)) {
    claim_finding(audit, check->claim, origin & ORIGIN_UNFOLLOWED ? VERDICT_CANNOT_TELL : VERDICT_BROKEN, node->where,
                  "'%s' branches on %s", condition, walk_origin_word(origin));
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

static void walk_hot(struct branch_check *check, bool (*visit)(struct syntax *node, void *data)) {
  for (int i = 0; i < check->walk->tree->n_functions; i++) {
    check->function = check->walk->tree->functions[i];
    if (check->function->role->is_hot) syntax_walk(check->function->body, visit, check);
  }
}

static void claim_branches(struct walk *walk) {
  struct claim *claim = audit_claim(walk->audit, "no-configuration-branch",
                                    "Every branch of the hot loop is a loop, or a choice by counters and constants, or "
                                    "a choice between numbers, or stands at the border of the step.");
  struct branch_check check = {.walk = walk, .claim = claim};
  walk_hot(&check, visit_branch);
  claim_evidence(walk->audit, claim, "%d loops, %d choices by counters, %d between numbers", check.loops,
                 check.shape_choices, check.numeric_choices);
}

/* ---- Failures ---- */

static const struct {
  const char *id, *sentence;
} sentences[FAILURE_KINDS] = {
    [FAILURE_BOUNDS] = {"in-bounds", "Every access of the hot loop lies inside its array."},
    [FAILURE_UNWRITTEN] = {"written-before-read", "A step reads nothing that it did not write before, but for the "
                                                  "weights and what is listed as state."},
    [FAILURE_PART] = {"whole-arrays", "Every kernel works on each of its arrays up to the extent that it declares."},
    [FAILURE_OVERLAP] = {"no-overlap", "No two buffers share memory while both are in use."},
    [FAILURE_ALIGNMENT] = {"aligned", "Every access of the hot loop stands where its type may stand."},
    [FAILURE_SIDE] = {"device-apart", "The host does not touch the device's memory itself, nor a kernel the host's."},
    [FAILURE_OVERFLOW] = {"no-overflow",
                          "No arithmetic on counters and constants leaves the range of its type, no shift "
                          "its bits, and nothing is divided by zero."},
};

static void add_failures(struct walk *walk, struct claim *claim, enum failure_kind kind, const struct failure *failures,
                         int count) {
  for (int i = 0; i < count; i++)
    if (failures[i].kind == kind)
      claim_finding(walk->audit, claim, failures[i].verdict, failures[i].where, "%s", failures[i].message);
}

/* What is read and written through a pointer that is not known may be any buffer. */
static void add_lost(struct walk *walk, struct claim *claim, enum failure_kind kind) {
  if (walk->lost == NULL || (kind != FAILURE_UNWRITTEN && kind != FAILURE_OVERLAP && kind != FAILURE_ALIGNMENT)) return;
  claim_finding(walk->audit, claim, VERDICT_CANNOT_TELL, walk->lost->where,
                "what '%s' reaches is not known: it may be any memory", walk_spell(walk, walk->lost));
}

void walk_add_failures(struct walk *walk, struct claim *claim, enum failure_kind kind) {
  add_failures(walk, claim, kind, walk->finals.items, walk->finals.count);
  add_failures(walk, claim, kind, walk->failures.items, walk->failures.count);
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
  struct audit *audit = check->walk->audit;
  if (note == NULL || !note->seen) return true;
  check->loops++;
  if (note->turns > loops->longest) loops->longest = note->turns;
  if (note->counts_steps)
    claim_fact(audit, check->claim, node->where, "a turn for each step, over the whole run");
  else if (note->is_shared_out)
    claim_fact(audit, check->claim, node->where, "a turn for each micro-batch that the runtime gives the step");
  else
    claim_fact(audit, check->claim, node->where, "%lld turns", (long long)note->turns);
  return true;
}

static void claim_loops(struct walk *walk) {
  struct claim *claim =
      audit_claim(walk->audit, "bounded-loops",
                  "Every loop of the hot loop is bounded by constants and the counters of loops around it.");
  struct loop_check check = {.base = {.walk = walk, .claim = claim}};
  walk_hot(&check.base, visit_loop);
  walk_add_failures(walk, claim, FAILURE_LOOP);
  claim_evidence(walk->audit, claim, "%d loops, the longest of %lld turns", check.base.loops, (long long)check.longest);
}

void walk_claims(struct walk *walk) {
  claim_branches(walk);
  claim_loops(walk);
  walk_claim_collectives(walk);
  for (int kind = FAILURE_BOUNDS; kind < FAILURE_KINDS; kind++) {
    if (kind == FAILURE_SIDE && walk->device == NULL) continue;
    struct claim *claim = audit_claim(walk->audit, sentences[kind].id, sentences[kind].sentence);
    walk_add_failures(walk, claim, (enum failure_kind)kind);
    add_lost(walk, claim, (enum failure_kind)kind);
    if (walk->device != NULL)
      claim_evidence(walk->audit, claim, "%d accesses, %d launches", walk->n_accesses, walk->audit->device->n_launches);
    else
      claim_evidence(walk->audit, claim, "%d accesses, %d kernels", walk->n_accesses, walk->n_kernels);
  }
}
