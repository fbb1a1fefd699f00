/* libFuzzer target: any text as a model. Its comments may give a config, as in the tests. */
#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "tests/model/reading.c" /* a target is one file */

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);
size_t LLVMFuzzerCustomMutator(unsigned char *data, size_t size, size_t limit, unsigned seed);
size_t LLVMFuzzerMutate(unsigned char *data, size_t size, size_t limit);

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size) {
  if (memchr(data, '\0', size) != NULL) return 0;
  struct arena *arena = arena_new();
  struct diagnostics diags = diagnostics_in(arena);
  const char *text = arena_copy(arena, data, size);
  if (strstr(text, "#include \"/") == NULL && strstr(text, "#include </") == NULL) {
    struct asked asked = ask_comments(arena, text);
    const struct tree *program = model_parse_text(arena, "fuzz.c", text, &diags);
    if (program != NULL) read_graph(arena, program, &asked, &diags);
  }
  arena_free(arena);
  return 0;
}

/* ---- Mutation by words: random bytes are seldom C ---- */

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

/* The bounds of the word or sign at or behind `at`. */
static size_t word_end(const unsigned char *text, size_t size, size_t at) {
  if (at >= size) return size;
  bool letter = isalnum(text[at]) || text[at] == '_';
  at++;
  while (letter && at < size && (isalnum(text[at]) || text[at] == '_')) at++;
  return at;
}

static size_t word_start(const unsigned char *text, size_t size, size_t at) {
  while (at > 0 && at < size && (isalnum(text[at]) || text[at] == '_') &&
         (isalnum(text[at - 1]) || text[at - 1] == '_'))
    at--;
  return at;
}

/* Replaces `removed` bytes at `at` by a word. */
static size_t splice(unsigned char *data, size_t size, size_t limit, size_t at, size_t removed, const void *word,
                     size_t length) {
  if (size - removed + length > limit) return size;
  memmove(data + at + length, data + at + removed, size - at - removed);
  memcpy(data + at, word, length);
  return size - removed + length;
}

size_t LLVMFuzzerCustomMutator(unsigned char *data, size_t size, size_t limit, unsigned seed) {
  srand(seed);
  if (size < 8 || rand() % 8 == 0) return LLVMFuzzerMutate(data, size, limit);
  for (int count = 1 + rand() % 3; count > 0 && size > 8; count--) {
    size_t start = word_start(data, size, (size_t)rand() % size), end = word_end(data, size, start);
    size_t other = word_start(data, size, (size_t)rand() % size), other_end = word_end(data, size, other);
    unsigned char copy[64];
    size_t length = other_end - other < sizeof copy ? other_end - other : sizeof copy;
    memcpy(copy, data + other, length);
    const char *word = words[(size_t)rand() % (sizeof words / sizeof words[0])];
    switch (rand() % 4) {
    case 0:
      size = splice(data, size, limit, start, end - start, copy, length);
      break;
    case 1:
      size = splice(data, size, limit, start, end - start, word, strlen(word));
      break;
    case 2:
      size = splice(data, size, limit, start, 0, word, strlen(word));
      break;
    default:
      size = splice(data, size, limit, start, end - start, "", 0);
      break;
    }
  }
  return size;
}
