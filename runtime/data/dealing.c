#include "runtime/data/dealing.h"

static int64_t round_of(const struct dealing *dealing) {
  return dealing->batch * dealing->ranks;
}

int64_t rt_dealt_positions(const struct dealing *dealing, int64_t samples) {
  int64_t round = round_of(dealing), rest = samples % round;
  return samples - rest + (dealing->keeps_last && rest > 0 ? round : 0);
}

int64_t rt_dealt_first(const struct dealing *dealing, int64_t number, int64_t rank) {
  return number * round_of(dealing) + rank * dealing->batch;
}

/* Of a last round with too few samples each rank takes the same number of them, the last ones from the epoch's start.
 */
static int64_t dispatched(const struct dealing *dealing, int64_t samples, int64_t position, bool *counts) {
  int64_t rest = samples % round_of(dealing), first = samples - rest;
  int64_t rank = (position - first) / dealing->batch, place = (position - first) % dealing->batch;
  int64_t each = (rest + dealing->ranks - 1) / dealing->ranks;
  *counts = place < each;
  return (first + rank * each + place) % samples;
}

int64_t rt_dealt_sample(const struct dealing *dealing, int64_t samples, int64_t position, bool *counts) {
  *counts = true;
  if (position < samples - samples % round_of(dealing)) return position;
  if (dealing->dispatches) return dispatched(dealing, samples, position, counts);
  bool absent = position - position % dealing->batch >= samples; /* the whole batch */
  *counts = position < samples || (dealing->even && dealing->ranks > 1) || (dealing->joins && absent);
  return position % samples;
}

int64_t rt_dealt_ranks(const struct dealing *dealing, int64_t samples, int64_t number) {
  int64_t left = samples - number * round_of(dealing) % rt_dealt_positions(dealing, samples);
  int64_t ranks = (left + dealing->batch - 1) / dealing->batch;
  return ranks < dealing->ranks ? ranks : dealing->ranks;
}
