/* The choice of a token from logits. */
#ifndef RUNTIME_GENERATION_SAMPLER_H
#define RUNTIME_GENERATION_SAMPLER_H

#include <stdint.h>

struct sampler {
  double temperature; /* 0: always the largest */
  int64_t top_k;      /* among the k largest, and what equals the last of them; 0: among all */
  double top_p;       /* of these among the likeliest whose probabilities first add up to this much (Holtzman et al.,
                         arXiv:1904.09751,       section 3.1); 0 and 1: among all */
  double penalty;     /* of what is in the text already (Keskar et al., arXiv:1909.05858, section 4.1); 0 and 1: none */
  uint64_t seed;
};

/* Divides by the penalty the logits of tokens that the text has, those below 0 times it, each once. */
void rt_penalize(const struct sampler *sampler, const int32_t *text, int64_t count, const float *logits,
                 float *penalized);

/* The least logit among which the sampler chooses: transformers' processors temperature, top-k and top-p, one after the
 * other. `scratch` holds vocabulary floats. */
float rt_least_logit(const struct sampler *sampler, const float *logits, int64_t vocabulary, float *scratch);

/* The token at position `index` of the text, from Philox at (seed, index). `scratch` holds vocabulary floats. -1 when a
 * logit is not a number. */
int64_t rt_sample(const struct sampler *sampler, const float *logits, int64_t vocabulary, uint64_t index,
                  float *scratch);

#endif
