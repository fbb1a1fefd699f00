/* Texts that a program for generation is given, as tokens. */
#ifndef RUNTIME_GENERATION_PROMPT_H
#define RUNTIME_GENERATION_PROMPT_H

#include "runtime/base/problem.h"

#include <stddef.h>
#include <stdint.h>

struct token_list {
  int32_t *items;
  int64_t count;
};

/* The tokens of `length` bytes of text: of a vocabulary of 256 the bytes, else numbers below it (0: any), separated by
 * white space. `what` names the text in errors. The caller frees items. */
bool rt_prompt_tokens(struct token_list *tokens, const char *what, const char *text, size_t length, int64_t vocabulary,
                      struct problem *problem);

/* The same of a file's bytes; of standard input where the path is "-". */
bool rt_prompt_file(struct token_list *tokens, const char *path, int64_t vocabulary, struct problem *problem);

#endif
