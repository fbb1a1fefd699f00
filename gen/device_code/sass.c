/* The form of the text: NVIDIA, "CUDA Binary Utilities". A line is a directive, a label, the location of what follows,
 * or an instruction: its address in a comment, a predicate, its name, its operands up to a semicolon. */
#include "gen/device_code/sass.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gen/base/text.h"
#include "gen/device_code/device_code.h"

struct sass_instruction {
  const char *name, *operands;
  bool is_guarded;
  int line; /* of the text */
};

struct sass_check {
  struct device_code code;
  struct lines lines;
  struct location where; /* line 0: the text does not say */
  int64_t frame, max_frame;
  int n_spills;
};

static struct code_location location_of(const struct sass_check *check, const struct sass_instruction *instruction) {
  return (struct code_location){check->where, instruction->line};
}

static void find(struct sass_check *check, int claim, enum verdict verdict, const struct sass_instruction *instruction,
                 const char *message) {
  const struct code_location location = location_of(check, instruction);
  device_find(&check->code, claim, verdict, &location, message);
}

/* ---- Instructions ---- */

/* The label that `(LABEL) of the operands names; NULL: there is none. */
static const char *target_of(struct arena *arena, const char *operands) {
  const char *open = strstr(operands, "`(");
  return open == NULL ? NULL : arena_copy(arena, open + 2, strcspn(open + 2, ")"));
}

static bool line_has(const struct sass_check *check, int line, const char *word) {
  size_t length = (size_t)check->lines.lengths[line], size = strlen(word);
  for (size_t at = 0; at + size <= length; at++)
    if (memcmp(check->lines.starts[line] + at, word, size) == 0) return true;
  return false;
}

/* Whether a branch passes over a call of the toolkit's mathematics, which serves the numbers that a division or a root
 * finds hard. */
static bool passes_over_mathematics(const struct sass_check *check, const struct sass_instruction *instruction,
                                    const char *target) {
  const char *label = target == NULL ? NULL : arena_printf(check->code.arena, "%s:", target);
  bool calls = false;
  for (int i = instruction->line; label != NULL && i < check->lines.count; i++) {
    if (strncmp(check->lines.starts[i], label, strlen(label)) == 0) return calls;
    calls = calls || (line_has(check, i, " CALL.") && line_has(check, i, "__internal_"));
  }
  return false;
}

static void check_branch(struct sass_check *check, const struct sass_instruction *instruction) {
  const char *target = target_of(check->code.arena, instruction->operands);
  const struct code_location location = location_of(check, instruction);
  bool mathematics =
      strstr(check->code.function, "__internal_") != NULL || passes_over_mathematics(check, instruction, target);
  device_branch(&check->code, &location, target, mathematics);
}

static void check_call(struct sass_check *check, const struct sass_instruction *instruction) {
  const struct code_location location = location_of(check, instruction);
  device_call(&check->code, &location, target_of(check->code.arena, instruction->operands));
}

/* R1 is the stack's end: it is taken from the launch, then moved by constants. */
static void check_stack(struct sass_check *check, const struct sass_instruction *instruction) {
  const char *operands = instruction->operands;
  if (!text_begins(operands, "R1,")) return;
  bool is_read = text_begins(instruction->name, "ST") || text_begins(instruction->name, "RED");
  bool taken = strstr(operands, "c[") != NULL && strstr(operands, "R1, R1") == NULL;
  if (is_read || taken) return;
  const char *by = strstr(operands, "0x");
  int64_t bytes = by != NULL ? strtoll(by, NULL, 16) : -1;
  bool moves = text_begins(operands, "R1, R1, ") && bytes >= 0 && bytes <= UINT32_MAX &&
               strstr(instruction->name, "ADD") != NULL;
  if (!moves) {
    find(check, check->code.memory, VERDICT_BROKEN, instruction, "a stack of a size that is not known before");
    return;
  }
  if (by[-1] == '-') check->frame += bytes;
  if (check->frame > check->max_frame) check->max_frame = check->frame;
}

static bool reads_clock(const char *operands) {
  static const char *const names[] = {"SR_CLOCK", "SR_GLOBALTIMER", "SR_VIRTUALSMID",
                                      "SR_SMID",  "SR_WARPID",      "SR_VIRTID"};
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
    if (strstr(operands, names[i]) != NULL) return true;
  return false;
}

/* Sums of floating-point numbers whose order the scheduler chooses. */
static bool is_unordered(const char *name) {
  bool atomic = text_begins(name, "ATOM") || text_begins(name, "RED.");
  bool real = strstr(name, ".F16") != NULL || strstr(name, ".F32") != NULL || strstr(name, ".F64") != NULL ||
              strstr(name, ".BF16") != NULL;
  return atomic && real && strstr(name, ".ADD") != NULL;
}

static bool is_operation(const char *name, const char *operation) {
  size_t length = strlen(operation);
  return strncmp(name, operation, length) == 0 && (name[length] == '\0' || name[length] == '.');
}

static void check_instruction(struct sass_check *check, const struct sass_instruction *instruction) {
  const char *name = instruction->name;
  check->code.n_instructions++;
  if (instruction->is_guarded && (is_operation(name, "BRA") || is_operation(name, "EXIT")))
    check_branch(check, instruction);
  if (is_operation(name, "BRX") || is_operation(name, "BRXU") || is_operation(name, "JMX") ||
      is_operation(name, "JMXU"))
    find(check, check->code.indirect, VERDICT_BROKEN, instruction, "a jump to an address in a register");
  if (is_operation(name, "CALL")) check_call(check, instruction);
  if (is_operation(name, "LDL") || is_operation(name, "STL")) check->n_spills++;
  check_stack(check, instruction);
  if (reads_clock(instruction->operands))
    find(check, check->code.clock, VERDICT_BROKEN, instruction,
         arena_printf(check->code.arena, "%s %s", name, instruction->operands));
  if (is_unordered(name)) find(check, check->code.order, VERDICT_BROKEN, instruction, name);
}

/* ---- Lines ---- */

static const char *skip_blanks(const char *at) {
  return at + strspn(at, " \t{");
}

/* An instruction after its address; false: there is none. */
static bool read_instruction(struct arena *arena, const char *line, struct sass_instruction *instruction) {
  const char *at = skip_blanks(line);
  if (!text_begins(at, "/*") || strstr(at, "*/") == NULL) return false;
  at = skip_blanks(strstr(at, "*/") + 2);
  instruction->is_guarded = *at == '@';
  if (*at == '@') at = skip_blanks(at + strcspn(at, " \t"));
  size_t length = strcspn(at, " \t;");
  if (*at < 'A' || *at > 'Z' || strchr(at, ';') == NULL) return false;
  instruction->name = arena_copy(arena, at, length);
  at = skip_blanks(at + length);
  instruction->operands = arena_copy(arena, at, strcspn(at, ";"));
  return true;
}

/* NAME: at the start of a line; NULL: it is none. */
static const char *read_label(struct arena *arena, const char *line) {
  size_t length = strcspn(line, ": \t");
  return length > 0 && line[length] == ':' ? arena_copy(arena, line, length) : NULL;
}

/* //## File "PATH", line N: of the innermost function; the locations that it was inlined at follow. */
static void read_location(struct sass_check *check, const char *line) {
  const char *open = strchr(line, '"'), *close = open != NULL ? strchr(open + 1, '"') : NULL;
  int number = 0;
  if (close == NULL || sscanf(close, "\", line %d", &number) != 1 || number < 1 || strstr(line, "//## File") == NULL)
    return;
  check->where = (struct location){
      .file = arena_copy(check->code.arena, open + 1, (size_t)(close - open - 1)), .line = number, .column = 1};
}

static void enter(struct sass_check *check, const char *label) {
  bool local = text_begins(label, ".L") || text_begins(label, ".text.");
  ARENA_PUSH(check->code.arena, check->code.labels, label);
  if (local) return;
  check->code.function = label;
  check->frame = 0;
  check->where.line = 0;
}

static void check_line(struct sass_check *check, const char *line, int number) {
  struct sass_instruction instruction = {.line = number};
  const char *label = read_label(check->code.arena, line);
  if (label != NULL)
    enter(check, label);
  else if (strstr(line, "//## File") != NULL)
    read_location(check, line);
  else if (check->code.function != NULL && read_instruction(check->code.arena, line, &instruction))
    check_instruction(check, &instruction);
}

/* ---- The claims ---- */

static const struct device_words words = {
    .prefix = "sass",
    .code = "machine code",
    .subject = "Machine code",
    .branches = "branch and end of machine code",
    .memory = "sass-stack",
    .memory_sentence = "The stack of a thread is moved by constants alone.",
};

static void check_all(struct sass_check *check) {
  const struct lines *lines = &check->lines;
  for (int i = 0; i < lines->count; i++) {
    const char *line = arena_copy(check->code.arena, lines->starts[i], (size_t)lines->lengths[i]);
    const char *label = read_label(check->code.arena, line);
    if (label != NULL) ARENA_PUSH(check->code.arena, check->code.defined, label);
    check->code.n_kernels += strstr(line, "STO_CUDA_ENTRY") != NULL;
    check->code.audit->n_functions += label != NULL && !text_begins(label, ".");
  }
  for (int i = 0; i < lines->count; i++)
    check_line(check, arena_copy(check->code.arena, lines->starts[i], (size_t)lines->lengths[i]), i + 1);
}

struct audit *sass_audit(struct arena *arena, const char *file, const char *text, struct diagnostics *diags) {
  struct sass_check check = {0};
  struct device_code *code = &check.code;
  if (!device_code_open(arena, file, text, diags, code)) return NULL;
  check.lines = lines_of(arena, code->text, code->length);
  device_claims(code, &words);
  check_all(&check);
  struct audit *audit = code->audit;
  audit->n_step_functions = code->n_kernels;
  device_evidence(code);
  claim_evidence(audit, &audit->claims[code->memory], "at most %lld bytes, %d accesses to a thread's own memory",
                 (long long)check.max_frame, check.n_spills);
  if (code->n_kernels > 0 && code->n_instructions > 0) return audit;
  diag_error(diags, (struct location){.file = file}, "this is not machine code of kernels");
  diag_help(diags, "give what 'nvdisasm -g -c' writes of what 'nvcc -cubin -lineinfo' makes of the program's .cu");
  return NULL;
}
