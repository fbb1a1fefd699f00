/* The choice of a token from logits. */
#ifndef RUNTIME_SAMPLER_H
#define RUNTIME_SAMPLER_H

#include <stdint.h>

struct sampler {
  double temperature; /* 0: always the largest */
  int64_t top_k;      /* among the k largest; 0: among all */
  uint64_t seed;
};

/* The token at place `index` of the text, from Philox at (seed, index). `scratch` holds vocabulary floats. -1 when a
 * logit is not a number. */
int64_t rt_sample(const struct sampler *sampler, const float *logits, int64_t vocabulary, uint64_t index,
                  float *scratch);

#endif
