#include "runtime/data/batch_sharding.h"

static int64_t round_of(const struct batch_sharding *sharding) {
  return sharding->batch * sharding->ranks;
}

int64_t rt_batch_sharding_positions(const struct batch_sharding *sharding, int64_t samples) {
  int64_t round = round_of(sharding), rest = samples % round;
  return samples - rest + (sharding->keeps_last && rest > 0 ? round : 0);
}

int64_t rt_batch_sharding_first(const struct batch_sharding *sharding, int64_t number, int64_t rank) {
  return number * round_of(sharding) + rank * sharding->batch;
}

/* Of a last round with too few samples each rank takes the same number of them, the last ones from the epoch's start.
 */
static int64_t dispatched(const struct batch_sharding *sharding, int64_t samples, int64_t position, bool *counts) {
  int64_t rest = samples % round_of(sharding), first = samples - rest;
  int64_t rank = (position - first) / sharding->batch, index = (position - first) % sharding->batch;
  int64_t each = (rest + sharding->ranks - 1) / sharding->ranks;
  *counts = index < each;
  return (first + rank * each + index) % samples;
}

int64_t rt_batch_sharding_sample(const struct batch_sharding *sharding, int64_t samples, int64_t position,
                                 bool *counts) {
  *counts = true;
  if (position < samples - samples % round_of(sharding)) return position;
  if (sharding->dispatches) return dispatched(sharding, samples, position, counts);
  bool absent = position - position % sharding->batch >= samples; /* the whole batch */
  *counts = position < samples || (sharding->even && sharding->ranks > 1) || (sharding->uneven_inputs && absent);
  return position % samples;
}

int64_t rt_batch_sharding_ranks(const struct batch_sharding *sharding, int64_t samples, int64_t number) {
  int64_t left = samples - number * round_of(sharding) % rt_batch_sharding_positions(sharding, samples);
  int64_t ranks = (left + sharding->batch - 1) / sharding->batch;
  return ranks < sharding->ranks ? ranks : sharding->ranks;
}
