/* Tokenize: texts to one token file by a tokenizer, with a bar on a terminal. A killed run is resumed. */
#ifndef ACCEL_COMMANDS_DATA_TOKENIZE_H
#define ACCEL_COMMANDS_DATA_TOKENIZE_H

#include "gen/tokenizer/documents.h"
#include "runtime/base/problem.h"

struct tokenizing {
  const char *tokenizer;         /* the tokenizer.json */
  const char *end;               /* the text of a token that ends each document; NULL: none */
  const char **texts;            /* files */
  struct text_selector selector; /* of documents in them */
  bool marks;                    /* the file says which tokens are trained on: those of the texts' ranges */
  const char *how;               /* what else the texts depend on, for a run that resumes; NULL: nothing */
  int count;
  const char *output;
  bool quiet; /* shows no progress, and prints nothing of what was written */
};

/* Writes tokenizing->output, and prints how much is in it. While it continues, OUTPUT.partial has the tokens and
 * OUTPUT.progress says where in the texts it is; the same call resumes from there. False with a problem. */
bool tokenize(const struct tokenizing *tokenizing, struct problem *problem);

#endif
