#include "gen/audit/calls.h"

#include <string.h>

#include "gen/audit/program/device.h"
#include "gen/audit/program/externals.h"
#include "gen/audit/taking.h"

/* ---- Reachability ---- */

struct marking {
  struct audit *audit;
  bool in_step_path;
};

static void mark_from(struct marking *marking, struct function *function);

/* What is called or named, what a sum by tree calls, and what was recorded for what is named. */
static bool mark_callee(struct syntax *node, void *data) {
  struct marking *marking = data;
  const struct device *device = marking->audit->device;
  if (node->function != NULL) mark_from(marking, node->function);
  if (device != NULL && device->adds_shards != NULL && device_adds_shards(node))
    mark_from(marking, device->adds_shards);
  if (node->kind != SYNTAX_VARIABLE || !node->variable->is_static) return true;
  struct function *recorded = device_recorded(device, node->variable);
  if (recorded != NULL) mark_from(marking, recorded);
  return true;
}

static void mark_from(struct marking *marking, struct function *function) {
  bool *mark = marking->in_step_path ? &function->role->in_step_path : &function->role->is_used;
  if (*mark) return;
  *mark = true;
  syntax_visit(function->body, mark_callee, marking);
  if (function->role->elsewhere != NULL) mark_from(marking, function->role->elsewhere);
}

struct root_search {
  struct audit *audit;
  bool in_loop;
  int below; /* so many calls below main */
};

static bool mark_loop_callee(struct syntax *node, void *data) {
  struct root_search *search = data;
  bool loop = node->kind == SYNTAX_FOR || node->kind == SYNTAX_WHILE || node->kind == SYNTAX_DO;
  if (loop && !search->in_loop) {
    struct root_search inner = {search->audit, true, 0};
    for (int i = 0; i < node->n_parts; i++) syntax_visit(node->parts[i], mark_loop_callee, &inner);
    return false;
  }
  struct function *callee = node->kind == SYNTAX_CALL ? node->function : NULL;
  if (search->in_loop && callee != NULL && callee->body != NULL && !callee->role->in_step_path) {
    const char *root = search->audit->root;
    search->audit->root =
        root == NULL ? callee->name : arena_printf(search->audit->arena, "%s, %s", root, callee->name);
    callee->role->is_root = true;
    mark_from(&(struct marking){search->audit, true}, callee);
  }
  return true;
}

/* The same in functions that are called from here, `below` calls down. */
static bool mark_in_callee(struct syntax *node, void *data) {
  const struct root_search *search = data;
  struct function *callee = node->kind == SYNTAX_CALL ? node->function : NULL;
  if (callee == NULL || callee->body == NULL) return true;
  struct root_search inner = {search->audit, false, search->below - 1};
  syntax_visit(callee->body, search->below > 1 ? mark_in_callee : mark_loop_callee, &inner);
  return true;
}

void calls_mark(struct audit *audit, const struct tree *tree, const char *root) {
  struct function *start = tree_function(tree, root != NULL ? root : "step");
  struct function *entry = tree_function(tree, "main");
  if (start != NULL && start->body != NULL) {
    audit->root = start->name;
    start->role->is_root = true;
    mark_from(&(struct marking){audit, true}, start);
  } else if (root == NULL && entry != NULL) {
    enum { MOST_BELOW = 3 };
    struct root_search search = {audit, false, 0};
    syntax_visit(entry->body, mark_loop_callee, &search);
    for (search.below = 1; audit->root == NULL && search.below <= MOST_BELOW; search.below++)
      syntax_visit(entry->body, mark_in_callee, &search);
  }
  if (entry != NULL) mark_from(&(struct marking){audit, false}, entry);
  for (int i = 0; i < tree->n_functions; i++) {
    const struct function *function = tree->functions[i];
    audit->n_functions += function->body != NULL;
    audit->n_step_functions += function->body != NULL && function->role->in_step_path;
  }
}

/* ---- The step path is there ---- */

static void check_root(struct audit *audit, const struct tree *tree) {
  struct claim *claim =
      audit_claim(audit, "step-path-found",
                  "The function that takes a training step is found, and a loop that main reaches calls it in every "
                  "iteration, in a program of the runtime's with the loop's counter and constants.");
  struct location whole = {.file = tree->file};
  if (audit->root == NULL)
    claim_finding(audit, claim, VERDICT_CANNOT_TELL, whole,
                  "no function 'step', and neither main nor what it calls has a loop that calls one");
  struct function *start = audit->root == NULL ? NULL : tree_function(tree, audit->root);
  if (start != NULL && tree_function(tree, "main") != NULL && !start->role->is_used)
    claim_finding(audit, claim, VERDICT_BROKEN, start->where, "main does not reach '%s'", start->name);
  else if (start != NULL && tree_function(tree, "main") != NULL)
    taking_check(audit, claim, tree_function(tree, "main"), start);
  claim_evidence(audit, claim, "%s, %d functions", audit->root == NULL ? "none" : audit->root, audit->n_step_functions);
}

/* ---- Recursion ---- */

struct recursion {
  struct audit *audit;
  struct claim *claim;
  const struct function *caller;
};

enum { UNSEEN, OPEN, DONE };

static void search_cycle(struct recursion *recursion, struct function *function);

static bool follow_call(struct syntax *node, void *data) {
  struct recursion *recursion = data;
  if (node->function == NULL || node->kind != SYNTAX_CALL) return true;
  if (node->function->role->mark == OPEN)
    claim_finding(recursion->audit, recursion->claim, VERDICT_BROKEN, node->where, "'%s' calls '%s' again",
                  recursion->caller->name, node->function->name);
  search_cycle(recursion, node->function);
  return true;
}

static void search_cycle(struct recursion *recursion, struct function *function) {
  if (function->role->mark != UNSEEN) return;
  function->role->mark = OPEN;
  struct recursion inner = {recursion->audit, recursion->claim, function};
  syntax_visit(function->body, follow_call, &inner);
  function->role->mark = DONE;
}

static void check_recursion(struct audit *audit, const struct tree *tree) {
  struct claim *claim = audit_claim(audit, "no-recursion", "No function calls itself, directly or through others.");
  struct recursion recursion = {audit, claim, NULL};
  for (int i = 0; i < tree->n_functions; i++) tree->functions[i]->role->mark = UNSEEN;
  for (int i = 0; i < tree->n_functions; i++) search_cycle(&recursion, tree->functions[i]);
  claim_evidence(audit, claim, "%d functions", audit->n_functions);
}

/* ---- Indirect calls ---- */

struct call_check {
  struct audit *audit;
  struct claim *claim;
  const struct function *caller;
  bool in_step_path;
  int n_calls;
};

static void visit_functions(const struct tree *tree, struct call_check *check,
                            bool (*visit)(struct syntax *node, void *data)) {
  for (int i = 0; i < tree->n_functions; i++) {
    check->caller = tree->functions[i];
    check->in_step_path = check->caller->role->in_step_path;
    syntax_visit(tree->functions[i]->body, visit, check);
  }
}

static const struct syntax *callee_of(const struct syntax *call) {
  const struct syntax *callee = call->parts[0];
  while (callee->kind == SYNTAX_CAST) callee = callee->parts[0];
  return callee;
}

static bool visit_indirect(struct syntax *node, void *data) {
  struct call_check *check = data;
  if (node->kind == SYNTAX_CALL) {
    check->n_calls++;
    if (node->function == NULL)
      claim_finding(check->audit, check->claim, VERDICT_BROKEN, node->where, "'%s' calls through a pointer",
                    check->caller->name);
    /* The name itself is no use of the function's address. */
    bool records = device_records(node); /* what it names is called when the recording is launched */
    for (int i = 1; i < node->n_parts && !records; i++) syntax_visit(node->parts[i], visit_indirect, check);
    if (node->function == NULL) syntax_visit((struct syntax *)callee_of(node), visit_indirect, check);
    return false;
  }
  if (node->kind == SYNTAX_FUNCTION)
    claim_finding(check->audit, check->claim, VERDICT_BROKEN, node->where, "the address of '%s' is taken",
                  node->function->name);
  if (node->kind == SYNTAX_GOTO)
    claim_finding(check->audit, check->claim, VERDICT_BROKEN, node->where, "a goto in '%s'", check->caller->name);
  return true;
}

static void check_indirect(struct audit *audit, const struct tree *tree) {
  struct claim *claim =
      audit_claim(audit, "no-indirect-call", "Every call names its function: no pointers to functions, no goto.");
  struct call_check check = {.audit = audit, .claim = claim};
  visit_functions(tree, &check, visit_indirect);
  for (int i = 0; i < tree->n_statics; i++) syntax_visit(tree->statics[i]->initial, visit_indirect, &check);
  claim_evidence(audit, claim, "%d calls", check.n_calls);
}

/* ---- Effects ---- */

static const struct {
  const char *id, *sentence;
  enum effect effect;
} effects[] = {
    {"no-allocation", "The step path allocates and frees nothing.", EFFECT_ALLOCATION},
    {"no-file", "The step path reads and writes no file and prints nothing.", EFFECT_FILE},
    {"no-network", "The step path opens no connection.", EFFECT_NETWORK},
    {"no-environment", "The step path reads nothing from its environment.", EFFECT_ENVIRONMENT},
    {"no-clock", "The step path reads no clock and draws no chance that a seed does not give.", EFFECT_CLOCK},
    {"no-process", "The step path starts, ends and signals no process and no thread of its own.", EFFECT_PROCESS},
    {"no-runtime-between-steps", "The step path calls nothing of the runtime that is made for the time between steps.",
     EFFECT_RUNTIME},
};

static bool is_external(const struct syntax *node) {
  return node->kind == SYNTAX_CALL && node->function != NULL && node->function->body == NULL &&
         node->function->role->elsewhere == NULL;
}

struct effect_check {
  struct call_check base;
  enum effect effect;
  int n_unknown;                /* calls of which nothing is known */
  struct location unknown;      /* the first of them */
  const char *unknown_function; /* NULL: through a pointer */
};

static void note_unknown(struct effect_check *check, const struct syntax *node) {
  if (check->n_unknown++ > 0) return;
  check->unknown = node->where;
  check->unknown_function = node->function != NULL ? node->function->name : NULL;
}

/* An unknown function: its effect cannot be decided. */
static void report_unknown(const struct effect_check *check) {
  if (check->n_unknown == 0) return;
  const char *name = check->unknown_function;
  claim_finding(check->base.audit, check->base.claim, VERDICT_CANNOT_TELL, check->unknown,
                "nothing is known of what '%s' does%s", name != NULL ? name : "a pointer to a function",
                check->n_unknown == 1
                    ? ""
                    : arena_printf(check->base.audit->arena, ", nor of %d calls more", check->n_unknown - 1));
}

static bool visit_effect(struct syntax *node, void *data) {
  struct effect_check *check = data;
  if (!check->base.in_step_path || node->kind != SYNTAX_CALL) return true;
  if (node->function == NULL) note_unknown(check, node);
  if (!is_external(node)) return true;
  check->base.n_calls++;
  if (external_effect(node->function->name) == EFFECT_UNKNOWN) note_unknown(check, node);
  if (external_effect(node->function->name) == check->effect)
    claim_finding(check->base.audit, check->base.claim, VERDICT_BROKEN, node->where, "'%s' calls %s: %s",
                  check->base.caller->name, node->function->name, effect_word(check->effect));
  return true;
}

static void check_effects(struct audit *audit, const struct tree *tree) {
  for (size_t i = 0; i < sizeof effects / sizeof effects[0]; i++) {
    struct effect_check check = {.base = {.audit = audit}, .effect = effects[i].effect};
    check.base.claim = audit_claim(audit, effects[i].id, effects[i].sentence);
    visit_functions(tree, &check.base, visit_effect);
    claim_evidence(audit, check.base.claim, "%d of %d external calls", check.base.claim->n_findings,
                   check.base.n_calls);
    report_unknown(&check);
  }
}

/* ---- Externals ---- */

/* A function that a library's header declares, by its own name, is what the table says it is. */
static void check_declaration(struct call_check *check, const struct function *function) {
  if (function->has_label)
    claim_finding(check->audit, check->claim, VERDICT_BROKEN, function->where,
                  "'%s' is declared with another name for the linker", function->name);
  bool own = function->header == NULL || strncmp(function->name, "__builtin_", strlen("__builtin_")) == 0;
  const struct device *device = check->audit->device;
  if (!own && (strcmp(function->header, check->audit->tree->file) == 0 ||
               (device != NULL && strcmp(function->header, device->file) == 0)))
    claim_finding(check->audit, check->claim, VERDICT_BROKEN, function->where,
                  "'%s' is declared here, not in a library's header", function->name);
}

static bool visit_external(struct syntax *node, void *data) {
  struct call_check *check = data;
  if (!check->in_step_path || !is_external(node)) return true;
  const char *name = node->function->name;
  enum effect effect = external_effect(name);
  if (effect == EFFECT_UNKNOWN)
    claim_finding(check->audit, check->claim, VERDICT_BROKEN, node->where, "'%s' calls '%s', which is not known",
                  check->caller->name, name);
  check_declaration(check, node->function);
  if (node->function->role->mark != OPEN) {
    check->n_calls++;
    claim_fact(check->audit, check->claim, node->where, "%s: %s", name, effect_word(effect));
  }
  node->function->role->mark = OPEN;
  return true;
}

static void check_externals(struct audit *audit, const struct tree *tree) {
  struct claim *claim = audit_claim(audit, "known-externals",
                                    "Every function that the step path calls and the program does not define is known: "
                                    "arithmetic, memory, a matrix library, exchanges, the runtime's batches.");
  struct call_check check = {.audit = audit, .claim = claim};
  for (int i = 0; i < tree->n_functions; i++) tree->functions[i]->role->mark = UNSEEN;
  visit_functions(tree, &check, visit_external);
  claim_evidence(audit, claim, "%d functions", check.n_calls);
}

/* ---- The program outside of its step path ---- */

static bool visit_program(struct syntax *node, void *data) {
  struct call_check *check = data;
  if (!is_external(node)) return true;
  const char *name = node->function->name;
  enum effect effect = external_effect(name);
  check->n_calls++;
  if (effect != EFFECT_UNKNOWN) check_declaration(check, node->function); /* an unknown function is reported as such */
  if (!effect_is_of_steps(effect) && !external_is_runtime(name))
    claim_finding(check->audit, check->claim, effect == EFFECT_UNKNOWN ? VERDICT_CANNOT_TELL : VERDICT_BROKEN,
                  node->where, "'%s' calls %s: %s", check->caller->name, name, effect_word(effect));
  if (effect == EFFECT_RUNTIME) claim_fact(check->audit, check->claim, node->where, "%s", name);
  return true;
}

static void check_program(struct audit *audit, const struct tree *tree) {
  struct claim *claim = audit_claim(audit, "runtime-alone",
                                    "In the whole program, files, the network, the environment, clocks and processes "
                                    "are reached through the runtime alone.");
  struct call_check check = {.audit = audit, .claim = claim};
  visit_functions(tree, &check, visit_program);
  claim_evidence(audit, claim, "%d external calls, %d of the runtime", check.n_calls, claim->n_facts);
}

void calls_check(struct audit *audit, const struct tree *tree) {
  check_root(audit, tree);
  check_recursion(audit, tree);
  check_indirect(audit, tree);
  check_effects(audit, tree);
  check_externals(audit, tree);
  check_program(audit, tree);
}
