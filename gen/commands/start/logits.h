/* Logits: what a published model computes after a random prompt, by a text generator that is built and run. */
#ifndef ACCEL_COMMANDS_START_LOGITS_H
#define ACCEL_COMMANDS_START_LOGITS_H

#include <jansson.h>

#include "gen/commands/cli/options.h"

enum { LOGITS_PROMPT = 8 };

struct logits {
  int prompt[LOGITS_PROMPT]; /* the same tokens for each vocabulary */
  const float *values;       /* of the token after it */
  int count;                 /* the vocabulary's size */
};

/* Computes them for the job of this text, whose sequences are as long as the prompt, with these weights. False after a
 * message on standard error: there is no compiler, the weights are not the model's, ... */
bool logits_compute(const struct options *options, const char *job, const char *weights, int vocabulary,
                    struct logits *logits);

/* The prompt and the largest logits, for people; all of them as {prompt, values}. */
const char *logits_text(struct arena *arena, const struct logits *logits);
json_t *logits_json(const struct logits *logits);

#endif
