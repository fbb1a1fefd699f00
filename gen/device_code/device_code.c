#include "gen/device_code/device_code.h"

#include <string.h>

#include "gen/base/file.h"

bool device_code_open(struct arena *arena, const char *file, const char *text, struct diagnostics *diags,
                      struct device_code *code) {
  size_t length = text != NULL ? strlen(text) : 0;
  if (text == NULL) text = read_bytes(arena, file, &length);
  if (text == NULL) {
    diag_error(diags, (struct location){.file = file}, "cannot be read");
    return false;
  }
  struct tree *tree = arena_alloc(arena, sizeof *tree);
  struct audit *audit = arena_alloc(arena, sizeof *audit);
  *tree = (struct tree){.file = file, .text = text, .n_lines = lines_of(arena, text, length).count};
  *audit = (struct audit){.arena = arena, .tree = tree, .root = "kernels", .scope = "kernels"};
  *code = (struct device_code){.audit = audit,
                               .arena = arena,
                               .file = file,
                               .text = text,
                               .length = length,
                               .sources = {.arena = arena, .file = file}};
  return true;
}

/* ---- The claims ---- */

static int claim(struct device_code *code, const char *id, const char *sentence) {
  audit_claim(code->audit, id, sentence);
  return code->audit->n_claims - 1;
}

void device_claims(struct device_code *code, const struct device_words *words) {
  struct arena *arena = code->arena;
  const char *prefix = words->prefix, *what = words->code;
  code->branches = claim(code, arena_printf(arena, "%s-branches", prefix),
                         arena_printf(arena,
                                      "Every conditional %s is at a line of the source with a loop, a choice, or a "
                                      "function of numbers that is made of choices.",
                                      words->branches));
  code->indirect = claim(code, arena_printf(arena, "%s-no-indirect", prefix),
                         arena_printf(arena, "No %s jumps to or calls an address in a register.", what));
  code->externals = claim(code, arena_printf(arena, "%s-externals", prefix),
                          arena_printf(arena,
                                       "%s calls only functions that this file defines: it allocates and prints "
                                       "nothing and starts no kernels.",
                                       words->subject));
  code->memory = claim(code, words->memory, words->memory_sentence);
  code->clock = claim(
      code, arena_printf(arena, "%s-no-clock", prefix),
      arena_printf(arena, "%s reads no clock, and not the number of the processor that it runs on.", words->subject));
  code->order = claim(code, arena_printf(arena, "%s-order", prefix),
                      "No sum of floating-point numbers depends on the order in which threads reach it.");
}

void device_evidence(struct device_code *code) {
  struct audit *audit = code->audit;
  claim_evidence(audit, &audit->claims[code->branches], "%d branches back, %d others", code->loops, code->others);
  claim_evidence(audit, &audit->claims[code->indirect], "%d calls by name", code->n_calls);
  claim_evidence(audit, &audit->claims[code->externals], "%d calls", code->n_calls);
  claim_evidence(audit, &audit->claims[code->clock], "%d instructions", code->n_instructions);
  claim_evidence(audit, &audit->claims[code->order], "%d instructions", code->n_instructions);
}

/* ---- What is found ---- */

void device_find(struct device_code *code, int claim, enum verdict verdict, const struct code_location *location,
                 const char *message) {
  struct location where = location->where;
  if (where.line == 0) where = (struct location){.file = code->file, .line = location->line, .column = 1};
  claim_finding(code->audit, &code->audit->claims[claim], verdict, where, "%s: %s",
                code->function != NULL ? code->function : "outside of functions", message);
}

static bool has_name(const struct device_names *names, const char *name) {
  for (int i = 0; i < names->count; i++)
    if (strcmp(names->items[i], name) == 0) return true;
  return false;
}

void device_branch(struct device_code *code, const struct code_location *location, const char *target,
                   bool mathematics) {
  struct claim *claim = &code->audit->claims[code->branches];
  bool back = target != NULL && has_name(&code->labels, target);
  code->loops += back;
  code->others += !back;
  if (mathematics) {
    claim_fact(code->audit, claim, location->where, "%s: the toolkit's mathematics", code->function);
    return;
  }
  if (location->where.line == 0) {
    device_find(code, code->branches, VERDICT_CANNOT_TELL, location, "a branch without a line: compile with -lineinfo");
    return;
  }
  enum explanation why = device_explains(&code->sources, location->where);
  if (why == LINE_EXPLAINS)
    claim_fact(code->audit, claim, location->where, "%s: %s", code->function,
               back ? "a loop" : "a choice, or a guard or remainder of a loop");
  else if (why == LINE_IS_NOT_THERE)
    device_find(code, code->branches, VERDICT_CANNOT_TELL, location, "the source of this branch cannot be read");
  else
    device_find(code, code->branches, VERDICT_BROKEN, location,
                "a branch at a line without a loop and without a choice");
}

void device_call(struct device_code *code, const struct code_location *location, const char *target) {
  code->n_calls++;
  if (target == NULL)
    device_find(code, code->indirect, VERDICT_BROKEN, location, "a call of an address in a register");
  else if (!has_name(&code->defined, target))
    device_find(code, code->externals, VERDICT_BROKEN, location,
                arena_printf(code->arena, "a call of %s, which is not defined here", target));
}
