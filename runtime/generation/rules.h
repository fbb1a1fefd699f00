/* What the generation_config.json next to a model's weights says of texts that are written from an input. Knows nothing
 * of files, so that it can be fuzzed. */
#ifndef RUNTIME_GENERATION_RULES_H
#define RUNTIME_GENERATION_RULES_H

#include "runtime/base/problem.h"
#include "runtime/generation/prompt.h"

#include <stdbool.h>

struct generation_rules {
  int32_t start;                         /* decoder_start_token_id, which a text begins with; -1: not known */
  bool prompts;                          /* it names tokens that follow on this one, which a prompt has to give */
  struct token_list ends;                /* a text ends after any of them (eos_token_id) */
  struct token_list suppressed;          /* never written (suppress_tokens) */
  struct token_list suppressed_at_first; /* not as the first token after the prompt (begin_suppress_tokens) */
};

/* Reads the `size` bytes of the file; tokens must be below `vocabulary`. `path` is for messages. A key that asks for
 * anything but the likeliest or a sampled token at a time, one after the other, is refused with its name.
 * rt_rules_free frees the lists, after a failure, too. */
bool rt_rules_read(struct generation_rules *rules, const char *path, const char *text, size_t size, int64_t vocabulary,
                   struct problem *problem);

void rt_rules_free(struct generation_rules *rules);

/* Takes from `logits` the tokens that may not be written, `first`: as the first one after the prompt, too. */
void rt_rules_suppress(const struct generation_rules *rules, bool first, float *logits);

/* Whether that may not be written. */
bool rt_rules_forbid(const struct generation_rules *rules, bool first, int32_t token);

/* Whether a text ends after this token. */
bool rt_rules_end(const struct generation_rules *rules, int32_t token);

#endif
