#include "gen/device_code/ptx.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "gen/device_code/device_code.h"
#include "gen/ptx/ptx_read.h"

struct ptx_check {
  struct device_code code;
  struct ptx_files files;
  int64_t shared, local; /* bytes of the function */
  int64_t max_shared, max_local;
};

static struct code_location location_of(const struct ptx_statement *statement) {
  return (struct code_location){statement->where, statement->line};
}

static void find(struct ptx_check *check, int claim, enum verdict verdict, const struct ptx_statement *statement,
                 const char *message) {
  const struct code_location location = location_of(statement);
  device_find(&check->code, claim, verdict, &location, message);
}

/* What the toolkit adds of its own for functions of numbers; it has no lines. */
static bool is_toolkits(const char *function) {
  return strncmp(function, "__internal_", 11) == 0 || strncmp(function, "__nv_", 5) == 0;
}

static void check_branch(struct ptx_check *check, const struct ptx_statement *statement) {
  const struct code_location location = location_of(statement);
  device_branch(&check->code, &location, statement->operands, is_toolkits(check->code.function));
}

/* ---- Instructions ---- */

/* The function that a call names: the operand without parentheses, after the results. */
static const char *called(struct arena *arena, const char *operands) {
  const char *at = operands;
  if (*at == '(') at += strcspn(at, ")") + (strchr(at, ')') != NULL);
  at += strspn(at, ", ");
  return arena_copy(arena, at, strcspn(at, ", ("));
}

static void check_call(struct ptx_check *check, const struct ptx_statement *statement) {
  const char *name = called(check->code.arena, statement->operands);
  const struct code_location location = location_of(statement);
  device_call(&check->code, &location, name[0] == '%' ? NULL : name);
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
  check->code.n_instructions++;
  if (branch && statement->is_guarded) check_branch(check, statement);
  if (strncmp(name, "brx", 3) == 0)
    find(check, check->code.indirect, VERDICT_BROKEN, statement, "a jump to an address in a register");
  if (strcmp(name, "call") == 0 || strncmp(name, "call.", 5) == 0) check_call(check, statement);
  if (strncmp(name, "alloca", 6) == 0)
    find(check, check->code.memory, VERDICT_BROKEN, statement, "memory of a size that is not known before");
  if (reads_clock(statement->operands))
    find(check, check->code.clock, VERDICT_BROKEN, statement,
         arena_printf(check->code.arena, "%s %s", name, statement->operands));
  if (is_unordered(name)) find(check, check->code.order, VERDICT_BROKEN, statement, name);
}

/* ---- Memory and functions ---- */

/* .shared .align 4 .b8 NAME[SIZE]; 0 for what is no array of bytes, -1 for one without a size that a GPU could have. */
static int64_t declared_bytes(const char *text) {
  const int64_t most = INT64_C(1) << 40;
  const char *type = strstr(text, " .b"), *open = strchr(text, '[');
  if (type == NULL) return 0;
  int64_t width = strtoll(type + 3, NULL, 10) / 8, count = open == NULL ? 1 : 0, bytes;
  if (open != NULL && isdigit((unsigned char)open[1])) count = strtoll(open + 1, NULL, 10);
  return count > 0 && !__builtin_mul_overflow(width, count, &bytes) && bytes >= 0 && bytes < most ? bytes : -1;
}

static void check_declaration(struct ptx_check *check, const struct ptx_statement *statement) {
  bool shared = strstr(statement->text, ".shared ") != NULL, local = strstr(statement->text, ".local ") != NULL;
  if (!shared && !local) return;
  int64_t bytes = declared_bytes(statement->text);
  if (bytes < 0)
    find(check, check->code.memory, VERDICT_CANNOT_TELL, statement, "memory of a size that the launch chooses");
  else if (shared)
    check->shared += bytes;
  else
    check->local += bytes;
}

static void close_function(struct ptx_check *check) {
  struct audit *audit = check->code.audit;
  if (check->shared + check->local > 0)
    claim_fact(audit, &audit->claims[check->code.memory], (struct location){.file = check->code.file},
               "%s: %lld bytes shared, %lld bytes of a thread", check->code.function, (long long)check->shared,
               (long long)check->local);
  if (check->shared > check->max_shared) check->max_shared = check->shared;
  if (check->local > check->max_local) check->max_local = check->local;
  check->shared = check->local = 0;
  check->code.labels.count = 0;
  check->code.function = NULL;
}

/* What is defined where, and which sources there are. */
static bool collect(struct ptx_check *check, struct diagnostics *diags) {
  struct device_code *code = &check->code;
  struct ptx_reader reader = ptx_open(code->arena, code->file, code->text, code->length);
  for (;;) {
    struct ptx_statement statement = ptx_next(&reader);
    check->files = reader.files;
    if (statement.kind == PTX_END) return true;
    if (statement.kind == PTX_FUNCTION) {
      ARENA_PUSH(code->arena, code->defined, statement.name);
      code->n_kernels += statement.is_kernel;
    }
    if (statement.kind != PTX_BROKEN) continue;
    diag_error(diags, (struct location){code->file, statement.line, 1, 0}, "this is not PTX");
    diag_help(diags, "give what 'nvcc -ptx -lineinfo' makes of the program's .cu");
    return false;
  }
}

static void check_all(struct ptx_check *check) {
  struct device_code *code = &check->code;
  struct ptx_reader reader = ptx_open(code->arena, code->file, code->text, code->length);
  reader.files = check->files;
  for (;;) {
    struct ptx_statement statement = ptx_next(&reader);
    if (statement.kind == PTX_END) return;
    if (statement.kind == PTX_FUNCTION) code->function = statement.name;
    if (statement.kind == PTX_CLOSE) close_function(check);
    if (statement.kind == PTX_LABEL) ARENA_PUSH(code->arena, code->labels, statement.name);
    if (statement.kind == PTX_DECLARATION) check_declaration(check, &statement);
    if (statement.kind == PTX_INSTRUCTION) check_instruction(check, &statement);
  }
}

/* ---- The claims ---- */

static const struct device_words words = {
    .prefix = "ptx",
    .code = "device code",
    .subject = "Device code",
    .branches = "branch of device code",
    .memory = "ptx-memory",
    .memory_sentence = "The memory of a thread and of a block is bounded.",
};

struct audit *ptx_audit(struct arena *arena, const char *file, const char *text, struct diagnostics *diags) {
  struct ptx_check check = {0};
  struct device_code *code = &check.code;
  if (!device_code_open(arena, file, text, diags, code) || !collect(&check, diags)) return NULL;
  struct audit *audit = code->audit;
  audit->n_functions = code->defined.count;
  audit->n_step_functions = code->n_kernels;
  device_claims(code, &words);
  check_all(&check);
  device_evidence(code);
  claim_evidence(audit, &audit->claims[code->memory], "at most %lld bytes of a thread, %lld of a block",
                 (long long)check.max_local, (long long)check.max_shared);
  return audit;
}
