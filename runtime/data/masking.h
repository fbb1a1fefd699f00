/* Masked language modelling: which tokens of a sample are hidden (Devlin et al., arXiv:1810.04805, section 3.1). */
#ifndef RUNTIME_DATA_MASKING_H
#define RUNTIME_DATA_MASKING_H

#include "include/accel/trainer.h"

/* The sequence at `position` of a stream of samples: draws its targets, hides them in `tokens`, and writes to `targets`
 * what stood there, ACCEL_NO_TARGET everywhere else. Either may be NULL; the tokens then stand in `targets`. Random
 * tokens are below `vocabulary`. A pure function of (seed, stream, position): position t is drawn by Philox's block
 * position * length + t. */
void rt_mask(const struct accel_masking *masking, uint64_t seed, uint64_t stream, int64_t position, int64_t length,
             int64_t vocabulary, int32_t *tokens, int32_t *targets);

#endif
