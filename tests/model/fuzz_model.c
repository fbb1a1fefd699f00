/* libFuzzer target: any text as a model. Its comments may give a config, as in the tests. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "tests/model/reading.c" /* a target is one file */
#include "tests/model/word_mutation.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);
size_t LLVMFuzzerCustomMutator(unsigned char *data, size_t size, size_t limit, unsigned seed);

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size) {
  if (memchr(data, '\0', size) != NULL) return 0;
  struct arena *arena = arena_new();
  struct diagnostics diags = diagnostics_in(arena);
  const char *text = arena_copy(arena, data, size);
  if (strstr(text, "#include \"/") == NULL && strstr(text, "#include </") == NULL) {
    struct model_options options = options_of_comments(arena, text);
    const struct tree *program = model_parse_text(arena, "fuzz.c", text, &diags);
    if (program != NULL) read_graph(arena, program, &options, &diags);
  }
  arena_free(arena);
  return 0;
}

static const char *const words[] = {
    "0",      "1",     "-1",    "2147483647", "12",       "0.5",    "x",      "s",        "c",      "i",
    "tensor", "int",   "scope", "double",     "long",     "bool",   "struct", "const",    "static", "inline",
    "if",     "else",  "for",   "while",      "do",       "switch", "case",   "default:", "break;", "continue;",
    "return", "{",     "}",     "(",          ")",        "[",      "]",      ";",        ",",      "=",
    "+=",     "*",     "/",     "%",          "-",        "+",      "<<",     ">>",       "?",      ":",
    "&&",     "||",    "!",     "~",          "==",       "<",      "++",     "--",       ".",      "->",
    "add",    "mul",   "at",    "nth",        "linear",   "relu",   "split",  "slice",    "concat", "reshape",
    "dim",    "rank",  "sum",   "mean_all",   "constant", "matmul", "tokens", "features", "sqrt",   "parameter",
    "sizeof", "assert"};

size_t LLVMFuzzerCustomMutator(unsigned char *data, size_t size, size_t limit, unsigned seed) {
  return mutate_words(data, size, limit, seed, words, sizeof words / sizeof words[0]);
}
