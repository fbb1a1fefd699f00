#include "gen/audit/ptx.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "gen/audit/device_source.h"
#include "gen/audit/ptx_read.h"
#include "gen/base/file.h"

struct names {
  const char **items;
  int count, capacity;
};

struct ptx_check {
  struct audit *audit;
  struct arena *arena;
  const char *file;
  const char *function; /* that is read; NULL: none */
  struct names defined; /* functions with a body */
  struct names labels;  /* of the function so far */
  struct ptx_files files;
  struct device_sources sources;
  int n_kernels, n_instructions, n_calls, loops, others;
  int64_t shared, local; /* bytes of the function */
  int64_t most_shared, most_local;
  int branches, indirect, externals, memory, clock, order; /* places of the claims in the list */
};

static void find(struct ptx_check *check, int claim, enum verdict verdict, const struct ptx_statement *statement,
                 const char *message) {
  struct location where = statement->where;
  if (where.line == 0) where = (struct location){.file = check->file, .line = statement->line, .column = 1};
  claim_finding(check->audit, &check->audit->claims[claim], verdict, where, "%s: %s",
                check->function != NULL ? check->function : "outside of functions", message);
}

static bool has_name(const struct names *names, const char *name) {
  for (int i = 0; i < names->count; i++)
    if (strcmp(names->items[i], name) == 0) return true;
  return false;
}

/* ---- Branches ---- */

/* What the toolkit adds of its own for functions of numbers; it has no lines. */
static bool is_toolkits(const char *function) {
  return strncmp(function, "__internal_", 11) == 0 || strncmp(function, "__nv_", 5) == 0;
}

static void check_branch(struct ptx_check *check, const struct ptx_statement *statement) {
  struct audit *audit = check->audit;
  bool back = has_name(&check->labels, statement->operands);
  check->loops += back;
  check->others += !back;
  if (is_toolkits(check->function)) {
    claim_fact(audit, &audit->claims[check->branches], statement->where, "%s: the toolkit's mathematics",
               check->function);
    return;
  }
  if (statement->where.line == 0) {
    find(check, check->branches, VERDICT_CANNOT_TELL, statement, "a branch without a line: compile with -lineinfo");
    return;
  }
  enum explanation why = device_explains(&check->sources, statement->where);
  if (why == LINE_IS_NOT_THERE) {
    find(check, check->branches, VERDICT_CANNOT_TELL, statement, "the source of this branch cannot be read");
    return;
  }
  if (why == LINE_EXPLAINS)
    claim_fact(audit, &audit->claims[check->branches], statement->where, "%s: %s", check->function,
               back ? "a loop" : "a choice, or a guard or remainder of a loop");
  else
    find(check, check->branches, VERDICT_BROKEN, statement, "a branch at a line without a loop and without a choice");
}

/* ---- Instructions ---- */

/* The function that a call names: the operand without parentheses behind what it gives. */
static const char *called(struct arena *arena, const char *operands) {
  const char *at = operands;
  if (*at == '(') at += strcspn(at, ")") + (strchr(at, ')') != NULL);
  at += strspn(at, ", ");
  return arena_copy(arena, at, strcspn(at, ", ("));
}

static void check_call(struct ptx_check *check, const struct ptx_statement *statement) {
  const char *name = called(check->arena, statement->operands);
  check->n_calls++;
  if (name[0] == '%')
    find(check, check->indirect, VERDICT_BROKEN, statement, "a call to where a register says");
  else if (!has_name(&check->defined, name))
    find(check, check->externals, VERDICT_BROKEN, statement,
         arena_printf(check->arena, "a call of %s, which is not defined here", name));
}

static bool reads_clock(const char *operands) {
  static const char *const names[] = {"%clock", "%globaltimer", "%smid", "%warpid", "%nwarpid", "%gridid", "%pm"};
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
    if (strstr(operands, names[i]) != NULL) return true;
  return false;
}

/* Sums of floating-point numbers whose order the scheduler chooses. */
static bool is_unordered(const char *name) {
  bool atomic = strncmp(name, "atom.", 5) == 0 || strncmp(name, "red.", 4) == 0;
  bool adds = strstr(name, ".add") != NULL;
  return atomic && adds && (strstr(name, ".f") != NULL || strstr(name, ".bf16") != NULL);
}

static void check_instruction(struct ptx_check *check, const struct ptx_statement *statement) {
  const char *name = statement->name;
  bool branch = strcmp(name, "bra") == 0 || strncmp(name, "bra.", 4) == 0;
  check->n_instructions++;
  if (branch && statement->is_guarded) check_branch(check, statement);
  if (strncmp(name, "brx", 3) == 0)
    find(check, check->indirect, VERDICT_BROKEN, statement, "a jump to where a register says");
  if (strcmp(name, "call") == 0 || strncmp(name, "call.", 5) == 0) check_call(check, statement);
  if (strncmp(name, "alloca", 6) == 0)
    find(check, check->memory, VERDICT_BROKEN, statement, "memory of a size that is not known before");
  if (reads_clock(statement->operands))
    find(check, check->clock, VERDICT_BROKEN, statement,
         arena_printf(check->arena, "%s %s", name, statement->operands));
  if (is_unordered(name)) find(check, check->order, VERDICT_BROKEN, statement, name);
}

/* ---- Memory and functions ---- */

/* .shared .align 4 .b8 NAME[SIZE]; 0 for what is no array of bytes, -1 for one without a size. */
static int64_t declared_bytes(const char *text) {
  const char *type = strstr(text, " .b"), *open = strchr(text, '[');
  int64_t width = type != NULL ? strtoll(type + 3, NULL, 10) / 8 : 0;
  if (type == NULL) return 0;
  if (open == NULL) return width;
  return isdigit((unsigned char)open[1]) ? width * strtoll(open + 1, NULL, 10) : -1;
}

static void check_declaration(struct ptx_check *check, const struct ptx_statement *statement) {
  bool shared = strstr(statement->text, ".shared ") != NULL, local = strstr(statement->text, ".local ") != NULL;
  if (!shared && !local) return;
  int64_t bytes = declared_bytes(statement->text);
  if (bytes < 0)
    find(check, check->memory, VERDICT_CANNOT_TELL, statement, "memory of a size that the launch chooses");
  else if (shared)
    check->shared += bytes;
  else
    check->local += bytes;
}

static void close_function(struct ptx_check *check) {
  struct audit *audit = check->audit;
  if (check->shared + check->local > 0)
    claim_fact(audit, &audit->claims[check->memory], (struct location){.file = check->file},
               "%s: %lld bytes shared, %lld bytes of a thread", check->function, (long long)check->shared,
               (long long)check->local);
  if (check->shared > check->most_shared) check->most_shared = check->shared;
  if (check->local > check->most_local) check->most_local = check->local;
  check->shared = check->local = 0;
  check->labels.count = 0;
  check->function = NULL;
}

/* What is defined where, and which sources there are. */
static bool collect(struct ptx_check *check, const char *text, size_t length, struct diagnostics *diags) {
  struct ptx_reader reader = ptx_open(check->arena, check->file, text, length);
  for (;;) {
    struct ptx_statement statement = ptx_next(&reader);
    check->files = reader.files;
    if (statement.kind == PTX_END) return true;
    if (statement.kind == PTX_FUNCTION) {
      ARENA_PUSH(check->arena, check->defined, statement.name);
      check->n_kernels += statement.is_kernel;
    }
    if (statement.kind != PTX_BROKEN) continue;
    diag_error(diags, (struct location){check->file, statement.line, 1, 0}, "this is no PTX");
    diag_help(diags, "give what 'nvcc -ptx -lineinfo' makes of the program's .cu");
    return false;
  }
}

static void check_all(struct ptx_check *check, const char *text, size_t length) {
  struct ptx_reader reader = ptx_open(check->arena, check->file, text, length);
  reader.files = check->files;
  for (;;) {
    struct ptx_statement statement = ptx_next(&reader);
    if (statement.kind == PTX_END) return;
    if (statement.kind == PTX_FUNCTION) check->function = statement.name;
    if (statement.kind == PTX_CLOSE) close_function(check);
    if (statement.kind == PTX_LABEL) ARENA_PUSH(check->arena, check->labels, statement.name);
    if (statement.kind == PTX_DECLARATION) check_declaration(check, &statement);
    if (statement.kind == PTX_INSTRUCTION) check_instruction(check, &statement);
  }
}

/* ---- The claims ---- */

static int claim(struct ptx_check *check, const char *id, const char *sentence) {
  audit_claim(check->audit, id, sentence);
  return check->audit->n_claims - 1;
}

static void make_claims(struct ptx_check *check) {
  check->branches = claim(check, "ptx-branches",
                          "Every conditional branch of device code stands at a line of the source with a loop, a "
                          "choice, or a function of numbers that is made of choices.");
  check->indirect = claim(check, "ptx-no-indirect", "No device code jumps or calls where a register says.");
  check->externals = claim(check, "ptx-externals",
                           "Device code calls only functions that this file defines: it allocates and prints nothing "
                           "and starts no kernels.");
  check->memory = claim(check, "ptx-memory", "The memory of a thread and of a block is bounded.");
  check->clock = claim(check, "ptx-no-clock", "Device code asks no clock, and not where it runs.");
  check->order =
      claim(check, "ptx-order", "No sum of floating-point numbers hangs on the order in which threads come to it.");
}

static void add_evidence(struct ptx_check *check) {
  struct audit *audit = check->audit;
  claim_evidence(audit, &audit->claims[check->branches], "%d branches back, %d others", check->loops, check->others);
  claim_evidence(audit, &audit->claims[check->indirect], "%d calls by name", check->n_calls);
  claim_evidence(audit, &audit->claims[check->externals], "%d calls", check->n_calls);
  claim_evidence(audit, &audit->claims[check->memory], "at most %lld bytes of a thread, %lld of a block",
                 (long long)check->most_local, (long long)check->most_shared);
  claim_evidence(audit, &audit->claims[check->clock], "%d instructions", check->n_instructions);
  claim_evidence(audit, &audit->claims[check->order], "%d instructions", check->n_instructions);
}

bool is_ptx(const char *file) {
  size_t length = strlen(file);
  return length > 4 && strcmp(file + length - 4, ".ptx") == 0;
}

struct audit *ptx_audit(struct arena *arena, const char *file, const char *text, struct diagnostics *diags) {
  size_t length = text != NULL ? strlen(text) : 0;
  if (text == NULL) text = read_bytes(arena, file, &length);
  if (text == NULL) {
    diag_error(diags, (struct location){.file = file}, "cannot be read");
    return NULL;
  }
  struct tree *tree = arena_alloc(arena, sizeof *tree);
  struct audit *audit = arena_alloc(arena, sizeof *audit);
  *tree = (struct tree){.file = file, .text = text, .n_lines = lines_of(arena, text, length).count};
  *audit = (struct audit){.arena = arena, .tree = tree, .root = "kernels", .hot = "kernels"};
  struct ptx_check check = {.audit = audit, .arena = arena, .file = file, .sources = {.arena = arena, .file = file}};
  if (!collect(&check, text, length, diags)) return NULL;
  audit->n_functions = check.defined.count;
  audit->n_hot = check.n_kernels;
  make_claims(&check);
  check_all(&check, text, length);
  add_evidence(&check);
  return audit;
}
