#include "runtime/data/masking.h"

#include "runtime/random/philox.h"

/* A word as a number of [0, 1). */
static double fraction(uint32_t word) {
  return word * 0x1p-32;
}

/* What a target's token becomes. */
static int32_t hidden(const struct accel_masking *masking, struct philox_block drawn, int64_t vocabulary,
                      int32_t token) {
  double how = fraction(drawn.word[1]);
  if (how < masking->random) return (int32_t)((uint64_t)drawn.word[2] * (uint64_t)vocabulary >> 32);
  return how < masking->random + masking->keep ? token : masking->mask_token;
}

void rt_mask(const struct accel_masking *masking, uint64_t seed, uint64_t stream, int64_t position, int64_t length,
             int64_t vocabulary, int32_t *tokens, int32_t *targets) {
  const int32_t *from = tokens != NULL ? tokens : targets;
  for (int64_t t = 0; from != NULL && t < length; t++) {
    struct philox_block drawn = rt_philox_block(seed, stream, (uint64_t)(position * length + t));
    bool target = fraction(drawn.word[0]) < masking->probability;
    int32_t token = from[t];
    if (targets != NULL) targets[t] = target ? token : ACCEL_NO_TARGET;
    if (target && tokens != NULL) tokens[t] = hidden(masking, drawn, vocabulary, token);
  }
}
