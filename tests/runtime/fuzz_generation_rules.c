/* Any bytes as a generation_config.json: what is accepted names tokens of the vocabulary alone. */
#include "runtime/generation/rules.h"

#include <stdlib.h>

enum { VOCABULARY = 40 };

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  struct generation_rules rules;
  struct problem problem;
  float logits[VOCABULARY] = {0};
  if (rt_rules_read(&rules, "fuzz", (const char *)bytes, size, VOCABULARY, &problem)) {
    if (rules.start < -1 || rules.start >= VOCABULARY) __builtin_trap();
    rt_rules_suppress(&rules, true, logits);
    for (int32_t token = 0; token < VOCABULARY; token++)
      if ((logits[token] < 0) != rt_rules_forbid(&rules, true, token)) __builtin_trap();
  }
  rt_rules_free(&rules);
  return 0;
}
