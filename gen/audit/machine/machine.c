/* The claims about machine code. The step path is found by lines: a function of it may have been inlined into any
 * other. */
#include "gen/audit/machine/machine.h"

#include <elf.h>
#include <string.h>

#include "gen/audit/program/externals.h"
#include "gen/base/path.h"

/* Adds what the decoder found of this kind. */
static void add_remarks(const struct machine_check *check, struct claim *claim, enum remark_kind kind) {
  for (int i = 0; i < check->machine->n_remarks; i++) {
    const struct remark *remark = &check->machine->remarks[i];
    const struct location where = remark->where.line > 0 && remark->where.file != NULL
                                      ? remark->where
                                      : (struct location){.file = check->audit->tree->file};
    if (remark->kind == kind) claim_finding(check->audit, claim, VERDICT_BROKEN, where, "%s", remark->message);
  }
}

/* ---- Lines of the source ---- */

static bool in_program(const struct audit *audit, struct location where) {
  return where.line > 0 && where.file != NULL &&
         strcmp(name_in_folder(where.file), name_in_folder(audit->tree->file)) == 0;
}

/* The function whose text has this line; NULL when there is none. */
static const struct function *function_of(const struct audit *audit, struct location where) {
  if (!in_program(audit, where)) return NULL;
  for (int i = 0; i < audit->tree->n_functions; i++) {
    const struct function *function = audit->tree->functions[i];
    if (function->body != NULL && where.line >= function->where.line && where.line <= function->body->last_line)
      return function;
  }
  return NULL;
}

static bool in_step_path(const struct audit *audit, const struct jump *jump) {
  const struct function *function = function_of(audit, jump->where);
  return function != NULL && function->role->in_step_path;
}

/* ---- Conditional jumps ---- */

enum reason { REASON_NONE, REASON_LOOP, REASON_CHOICE, REASON_CALL, REASON_START };

struct reason_search {
  int line;
  enum reason reason;
};

static bool find_reason(struct syntax *node, void *data) {
  struct reason_search *search = data;
  if (search->line < node->where.line || search->line > node->last_line) return node->kind == SYNTAX_DECLARE;
  bool loop = node->kind == SYNTAX_FOR || node->kind == SYNTAX_WHILE || node->kind == SYNTAX_DO;
  bool logic = node->kind == SYNTAX_BINARY && (node->operation == OPERATOR_AND || node->operation == OPERATOR_OR);
  bool choice = node->kind == SYNTAX_SELECT || node->kind == SYNTAX_SWITCH || logic ||
                (node->kind == SYNTAX_IF && search->line <= node->parts[0]->last_line);
  bool call = node->kind == SYNTAX_CALL && node->function != NULL && node->function->body == NULL;
  if (loop) search->reason = REASON_LOOP;
  if (choice && search->reason != REASON_LOOP) search->reason = REASON_CHOICE;
  if (call && search->reason == REASON_NONE) search->reason = REASON_CALL;
  return true;
}

struct use_search {
  int line;
  bool in_loop, found;
  const struct variable *variable; /* that the line declares */
};

static bool find_declared(struct syntax *node, void *data) {
  struct use_search *search = data;
  if (node->kind == SYNTAX_DECLARE && node->where.line <= search->line && node->last_line >= search->line)
    search->variable = node->variable;
  return true;
}

static bool find_use(struct syntax *node, void *data) {
  struct use_search *search = data;
  bool loop = node->kind == SYNTAX_FOR || node->kind == SYNTAX_WHILE || node->kind == SYNTAX_DO;
  if (loop && !search->in_loop) {
    struct use_search inner = {search->line, true, false, search->variable};
    for (int i = 0; i < node->n_parts; i++) syntax_visit(node->parts[i], find_use, &inner);
    search->found = search->found || inner.found;
    return false;
  }
  if (search->in_loop && node->kind == SYNTAX_VARIABLE && node->variable == search->variable) search->found = true;
  return true;
}

/* Whether the line declares what a loop of the function uses: a compiler checks there whether the loop's arrays
 * alias, or whether it has any iteration. */
static bool prepares_loop(const struct function *function, int line) {
  struct use_search search = {.line = line};
  syntax_visit(function->body, find_declared, &search);
  if (search.variable != NULL) syntax_visit(function->body, find_use, &search);
  return search.found;
}

/* What of the source explains a conditional jump at this line of a function. */
static enum reason explain_line(const struct audit *audit, const struct function *function, int line) {
  struct reason_search search = {line, REASON_NONE};
  syntax_visit(function->body, find_reason, &search);
  if (search.reason != REASON_NONE) return search.reason;
  for (int i = 0; i < audit->marks.count; i++) { /* the pragma that divides a loop is in front of it */
    const struct mark *mark = &audit->marks.items[i];
    if (mark->kind == MARK_PRAGMA && mark->where.line == line && strncmp(mark->text, "omp ", 4) == 0)
      return REASON_LOOP;
  }
  if (prepares_loop(function, line)) return REASON_LOOP;
  bool starts = line >= function->where.line && line <= function->body->where.line;
  return starts ? REASON_START : REASON_NONE;
}

/* Whether a function takes numbers alone: inlined, it is part of its caller's loop. */
static bool is_of_numbers(const struct function *function) {
  for (int i = 0; i < function->n_parameters; i++) {
    enum type_kind kind = function->parameters[i]->type->kind;
    if (kind != TYPE_REAL && kind != TYPE_INTEGER) return false;
  }
  return function->n_parameters > 0;
}

/* The same for a jump: its line, or the inlined calls around it. */
static enum reason explain(const struct audit *audit, const struct jump *jump) {
  const struct function *function = function_of(audit, jump->where);
  enum reason reason = explain_line(audit, function, jump->where.line);
  for (int i = 0; reason == REASON_NONE && i < MAX_CALLERS && jump->callers[i] > 0; i++) {
    struct location where = {jump->where.file, jump->callers[i], 1, 0};
    if (function == NULL || !is_of_numbers(function)) break;
    function = function_of(audit, where);
    if (function != NULL) reason = explain_line(audit, function, where.line);
    if (reason == REASON_CALL || reason == REASON_START) reason = REASON_NONE; /* the call itself explains nothing */
  }
  return reason;
}

static const char *reason_word(enum reason reason, bool backward) {
  static const char *const words[] = {"", "a guard or remainder of a loop", "a choice", "an inlined call",
                                      "the function's start"};
  return reason == REASON_LOOP && backward ? "a loop" : words[reason];
}

static void check_branches(const struct machine_check *check) {
  struct audit *audit = check->audit;
  struct claim *claim =
      audit_claim(audit, "machine-branches",
                  "Every conditional jump of the step path belongs to a loop or a choice of the source.");
  int loops = 0, others = 0;
  for (int i = 0; i < check->machine->n_jumps; i++) {
    const struct jump *jump = &check->machine->jumps[i];
    if (jump->kind != JUMP_CONDITIONAL || !in_step_path(audit, jump)) continue;
    const struct function *function = function_of(audit, jump->where);
    enum reason reason = explain(audit, jump);
    struct location where = {audit->tree->file, jump->where.line, jump->where.column > 0 ? jump->where.column : 1, 0};
    if (reason == REASON_NONE)
      claim_finding(audit, claim, VERDICT_BROKEN, where,
                    "a conditional jump in %s, where '%s' has no loop and no choice", jump->function, function->name);
    else
      claim_fact(audit, claim, where, "%s: %s", jump->function, reason_word(reason, jump->is_backward));
    loops += reason == REASON_LOOP && jump->is_backward;
    others += !(reason == REASON_LOOP && jump->is_backward);
  }
  if (!check->machine->has_lines)
    claim_finding(audit, claim, VERDICT_CANNOT_TELL, (struct location){.file = audit->tree->file},
                  "the object has no line table: compile it with -g");
  claim_evidence(audit, claim, "%d instructions, %d jumps back, %d others", check->machine->n_instructions, loops,
                 others);
}

/* ---- Calls ---- */

static void check_indirect(const struct machine_check *check) {
  struct audit *audit = check->audit;
  struct claim *claim =
      audit_claim(audit, "machine-no-indirect", "No code of the object jumps to or calls an address in a register.");
  int calls = 0;
  for (int i = 0; i < check->machine->n_jumps; i++) {
    const struct jump *jump = &check->machine->jumps[i];
    calls += jump->kind == JUMP_CALL;
    if (jump->kind != JUMP_INDIRECT && jump->kind != JUMP_CALL_INDIRECT) continue;
    claim_finding(audit, claim, VERDICT_BROKEN, jump->where, "an indirect %s in %s",
                  jump->kind == JUMP_INDIRECT ? "jump" : "call", jump->function);
  }
  claim_evidence(audit, claim, "%d calls by name", calls);
}

bool machine_is_compilers(const char *name) {
  static const char *const starts[] = {"GOMP_", "omp_get_", "__kmpc_", "_ZGV"};
  static const char *const names[] = {
      "memcpy", "memset",  "memmove", "memcmp", "__stack_chk_fail", "__memcpy_chk", "__memset_chk", "__memmove_chk",
      "sincos", "sincosf", "exp10",   "exp10f", "__truncsfbf2",     "__truncsfhf2", "__extendhfsf2"};
  for (size_t i = 0; i < sizeof starts / sizeof starts[0]; i++)
    if (strncmp(name, starts[i], strlen(starts[i])) == 0) return true;
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
    if (strcmp(name, names[i]) == 0) return true;
  /* One function of C's mathematics for another one: exp2 for pow. */
  return external_effect(name) == EFFECT_ARITHMETIC && external_is_listed(name) && !external_is_runtime(name);
}

/* The same names as of the claim runtime-alone, about the text: what the source calls, and of that the runtime and
 * what is made for a step. */
static void check_name(const struct machine_check *check, struct claim *claim, const char *name) {
  struct audit *audit = check->audit;
  const struct location where = {.file = audit->tree->file};
  const struct function *function = tree_function(audit->tree, name);
  const enum effect effect = external_effect(name);
  if (machine_is_compilers(name)) return;
  if (function == NULL)
    claim_finding(audit, claim, VERDICT_BROKEN, where,
                  "the object has the linker find %s, which the source does not "
                  "name",
                  name);
  else if (!effect_is_of_steps(effect) && !external_is_runtime(name))
    claim_finding(audit, claim, effect == EFFECT_UNKNOWN ? VERDICT_CANNOT_TELL : VERDICT_BROKEN, where,
                  "the object has the linker find %s: %s", name, effect_word(effect));
}

static void check_externals(const struct machine_check *check) {
  struct audit *audit = check->audit;
  struct claim *claim = audit_claim(audit, "machine-externals",
                                    "The linker finds for the object only what the source calls and the audit knows, "
                                    "and what a compiler adds for C and OpenMP.");
  int calls = 0, names = 0;
  for (int i = 0; i < check->machine->n_jumps; i++) {
    const struct jump *jump = &check->machine->jumps[i];
    if (jump->kind != JUMP_CALL || !jump->is_external || jump->target == NULL) continue;
    calls++;
    const struct function *function = tree_function(audit->tree, jump->target);
    if (function == NULL && !machine_is_compilers(jump->target))
      claim_finding(audit, claim, VERDICT_BROKEN, jump->where, "%s calls %s, which the source does not name",
                    jump->function, jump->target);
    if (in_step_path(audit, jump) && !effect_is_of_steps(external_effect(jump->target)) &&
        !machine_is_compilers(jump->target))
      claim_finding(audit, claim, VERDICT_BROKEN, jump->where, "the step path in %s calls %s: %s", jump->function,
                    jump->target, effect_word(external_effect(jump->target)));
  }
  for (size_t i = 1; i < check->machine->object->n_symbols; i++) {
    const struct object_symbol *symbol = &check->machine->object->symbols[i];
    if (symbol->section != SHN_UNDEF || symbol->name[0] == '\0') continue;
    names++;
    check_name(check, claim, symbol->name);
  }
  claim_evidence(audit, claim, "%d calls of %d functions", calls, names);
}

/* ---- Functions and stack ---- */

bool machine_is_outlined(const char *name) {
  static const char *const parts[] = {"._omp_fn.", ".omp_outlined", ".omp.reduction.reduction_func",
                                      "_omp_reduction_reduction_func"};
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
    if (strstr(name, parts[i]) != NULL) return true;
  return false;
}

/* A compiler's copies and parts of a function have a suffix after a point. */
const struct function *machine_source(const struct audit *audit, const char *name) {
  return tree_function(audit->tree, arena_copy(audit->arena, name, strcspn(name, ".")));
}

static void check_functions(const struct machine_check *check) {
  struct audit *audit = check->audit;
  struct claim *claim = audit_claim(audit, "machine-functions",
                                    "Every function of the object is one of the source, all code is of a function, and "
                                    "every instruction is decoded.");
  for (int i = 0; i < check->machine->n_functions; i++) {
    const struct machine_function *function = &check->machine->functions[i];
    struct location where = {.file = audit->tree->file};
    const struct function *source = machine_source(audit, function->name);
    const bool is_part = function->name[0] == '.' && machine_is_outlined(function->name); /* of clang's, before 16 */
    if ((source == NULL || source->body == NULL) && !is_part)
      claim_finding(audit, claim, VERDICT_BROKEN, where, "the object has %s, which the source does not",
                    function->name);
    if (function->n_undecoded > 0)
      claim_finding(audit, claim, VERDICT_CANNOT_TELL, where, "%d bytes of %s are not decoded", function->n_undecoded,
                    function->name);
  }
  add_remarks(check, claim, REMARK_FUNCTION);
  claim_evidence(audit, claim, "%d functions, %d instructions", check->machine->n_functions,
                 check->machine->n_instructions);
}

static void check_instructions(const struct machine_check *check) {
  struct audit *audit = check->audit;
  struct claim *claim = audit_claim(audit, "machine-instructions",
                                    "Every instruction is one that compilers make of C: none reaches the system, a "
                                    "port, another segment or a setting of the processor, and every jump goes to an "
                                    "instruction of its function or to the start of another.");
  add_remarks(check, claim, REMARK_INSTRUCTION);
  claim_evidence(audit, claim, "%d instructions", check->machine->n_instructions);
}

static void check_relocations(const struct machine_check *check) {
  struct audit *audit = check->audit;
  struct claim *claim = audit_claim(audit, "machine-relocations",
                                    "The linker fills in operands of instructions and pointers of data alone, and no "
                                    "address of code is taken but of regions that OpenMP runs.");
  const struct object_file *object = check->machine->object;
  for (int i = 0; i < object->n_problems; i++)
    claim_finding(audit, claim, VERDICT_BROKEN, (struct location){.file = audit->tree->file}, "%s",
                  object->problems[i]);
  add_remarks(check, claim, REMARK_RELOCATION);
  claim_evidence(audit, claim, "%zu relocations", object->n_relocations);
}

static void check_stack(const struct machine_check *check) {
  struct audit *audit = check->audit;
  struct claim *claim =
      audit_claim(audit, "machine-stack",
                  "The stack that the object's functions need is bounded, and they return to where they were called.");
  int64_t deepest = 0;
  for (int i = 0; i < check->machine->n_functions; i++) {
    const struct machine_function *function = &check->machine->functions[i];
    struct location where = {.file = audit->tree->file};
    if (function->depth < 0)
      claim_finding(audit, claim, VERDICT_BROKEN, where, "how much stack %s needs is not bounded", function->name);
    else
      claim_fact(audit, claim, where, "%s: %lld bytes, %lld with what it calls", function->name,
                 (long long)function->frame, (long long)function->depth);
    if (function->depth > deepest) deepest = function->depth;
  }
  add_remarks(check, claim, REMARK_STACK);
  claim_evidence(audit, claim, "%lld bytes at most, without what functions from outside need", (long long)deepest);
}

bool machine_check(struct audit *audit, const struct audit_options *options, struct diagnostics *diags) {
  const char *why = NULL;
  struct machine *machine = machine_read(audit->arena, options->object, &why);
  if (machine == NULL) {
    diag_error(diags, (struct location){.file = options->object}, "cannot read the object: %s", why);
    return false;
  }
  const struct machine_check check = {audit, options, machine};
  machine_check_tables(&check);
  check_functions(&check);
  check_instructions(&check);
  machine_check_lines(&check);
  check_branches(&check);
  check_indirect(&check);
  check_relocations(&check);
  check_externals(&check);
  check_stack(&check);
  machine_check_rebuilt(&check);
  return true;
}
