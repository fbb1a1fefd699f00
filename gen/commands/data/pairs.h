/* Preference pairs: records of a prompt and two completions, of which one was chosen, to arrays (.npz) that data.inputs
 * names. */
#ifndef ACCEL_COMMANDS_DATA_PAIRS_H
#define ACCEL_COMMANDS_DATA_PAIRS_H

#include <stdbool.h>
#include <stdint.h>

#include "gen/commands/data/chat.h"
#include "gen/tokenizer/documents.h"
#include "runtime/base/problem.h"

struct pairing {
  const char **files; /* JSON Lines */
  int count;
  struct chat *chat;                 /* renders messages; of TRAIN_ON_ASSISTANT */
  const char *tokenizer, *pad, *end; /* the tokenizer.json; texts of the padding token and of the token that ends a
                                        completion, or NULL */
  int64_t length;                    /* tokens of a prompt and a completion */
  const char *output;                /* the .npz */
  struct skipped *skipped;           /* the caller's: counts bad records; NULL: such a record is a problem */
  bool quiet;                        /* shows no progress, and prints nothing of what was written */
};

/* Writes the archive, and prints what is in it. False with a problem, and without a new file. */
bool pairs_write(const struct pairing *pairing, struct problem *problem);

#endif
