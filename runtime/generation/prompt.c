#include "runtime/generation/prompt.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool no_memory(const char *what, struct problem *problem) {
  rt_problem(problem, "no memory for %s", what);
  return rt_help(problem, "give a shorter text");
}

static bool read_numbers(struct token_list *tokens, const char *what, const char *text, int64_t vocabulary,
                         struct problem *problem) {
  static const char space[] = " \t\r\n";
  for (const char *at = text + strspn(text, space); *at != '\0'; at += strspn(at, space)) {
    char *end;
    errno = 0;
    long long token = strtoll(at, &end, 10);
    bool known = token >= 0 && token <= INT32_MAX && (vocabulary == 0 || token < vocabulary);
    if (end == at || errno != 0 || !known || (*end != '\0' && strchr(space, *end) == NULL)) {
      rt_problem(problem, "%s must be token numbers below the vocabulary, separated by spaces", what);
      return rt_help(problem, "for example '464 3616'");
    }
    tokens->items[tokens->count++] = (int32_t)token;
    at = end;
  }
  return true;
}

bool rt_prompt_tokens(struct token_list *tokens, const char *what, const char *text, size_t length, int64_t vocabulary,
                      struct problem *problem) {
  *tokens = (struct token_list){.items = malloc((length + 1) * sizeof *tokens->items)};
  if (tokens->items == NULL) return no_memory(what, problem);
  if (vocabulary != 256) return read_numbers(tokens, what, text, vocabulary, problem);
  for (size_t i = 0; i < length; i++) tokens->items[tokens->count++] = (unsigned char)text[i];
  return true;
}

/* All bytes of a file and a NUL; NULL with a problem. */
static char *read_all(FILE *file, const char *path, size_t *length, struct problem *problem) {
  size_t capacity = 1 << 16, count = 0;
  char *bytes = malloc(capacity);
  while (bytes != NULL) {
    count += fread(bytes + count, 1, capacity - count - 1, file);
    if (count < capacity - 1) break;
    char *more = realloc(bytes, capacity *= 2);
    if (more == NULL) free(bytes);
    bytes = more;
  }
  if (bytes == NULL) {
    no_memory(path, problem);
  } else if (ferror(file)) {
    rt_problem(problem, "%s: cannot be read: %s", path, strerror(errno));
    free(bytes);
    return NULL;
  } else {
    bytes[ *length = count] = '\0';
  }
  return bytes;
}

bool rt_prompt_file(struct token_list *tokens, const char *path, int64_t vocabulary, struct problem *problem) {
  bool standard = strcmp(path, "-") == 0;
  FILE *file = standard ? stdin : fopen(path, "rb");
  *tokens = (struct token_list){0};
  if (file == NULL) {
    rt_problem(problem, "%s: cannot be opened: %s", path, strerror(errno));
    return rt_help(problem, "name a file with --prompt-file, or - for standard input");
  }
  size_t length = 0;
  char *bytes = read_all(file, path, &length, problem);
  if (!standard) fclose(file);
  bool good =
      bytes != NULL && rt_prompt_tokens(tokens, standard ? "standard input" : path, bytes, length, vocabulary, problem);
  free(bytes);
  return good;
}
