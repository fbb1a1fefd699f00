/* libFuzzer target: any text as a program to audit. It does not compile, or each claim about it has a verdict. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "gen/audit/audit.h"
#include "tests/model/word_mutation.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);
size_t LLVMFuzzerCustomMutator(unsigned char *data, size_t size, size_t limit, unsigned seed);

/* Headers that the machine has are not the input's to name, but for those of the seeds. */
static bool includes_others(const char *text) {
  for (const char *at = strstr(text, "include"); at != NULL; at = strstr(at + 1, "include"))
    if (strncmp(at, "include <accel/trainer.h>", 25) != 0) return true;
  return strstr(text, "#embed") != NULL;
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size) {
  if (memchr(data, '\0', size) != NULL) return 0;
  struct arena *arena = arena_new();
  struct diagnostics diags = diagnostics_in(arena);
  static const char *const flags[] = {"-I", "include"};
  struct audit_options options = {.text = arena_copy(arena, data, size), .flags = flags, .n_flags = 2};
  if (!includes_others(options.text)) {
    const struct audit *audit = audit_run(arena, "fuzz.c", &options, &diags);
    if ((audit == NULL) != (diags.errors > 0)) abort();
    if (audit != NULL && audit->n_claims == 0) abort();
  }
  arena_free(arena);
  return 0;
}

static const char *const words[] = {"0",           "1",      "-1",      "2147483647", "9223372036854775807",
                                    "0xffffffffu", "64",     "3",       "i",          "x",
                                    "y",           "at",     "arena",   "->",         ".",
                                    "[",           "]",      "(",       ")",          "{",
                                    "}",           ";",      ",",       "=",          "+=",
                                    "-=",          "*",      "/",       "%",          "-",
                                    "+",           "<<",     ">>",      "?",          ":",
                                    "&&",          "||",     "!",       "~",          "&",
                                    "==",          "!=",     "<",       ">=",         "++",
                                    "--",          "if",     "else",    "for",        "while",
                                    "do",          "switch", "case",    "default:",   "break;",
                                    "return",      "sizeof", "struct",  "union",      "static",
                                    "const",       "float",  "int32_t", "int64_t",    "size_t",
                                    "unsigned",    "char",   "int8_t",  "memcpy",     "memset",
                                    "malloc",      "step",   "kernel"};

size_t LLVMFuzzerCustomMutator(unsigned char *data, size_t size, size_t limit, unsigned seed) {
  return mutate_words(data, size, limit, seed, words, sizeof words / sizeof words[0]);
}
