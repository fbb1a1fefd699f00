#include "order.h"

#include "permutation.h"
#include "philox.h"

static const struct dealing single = {.batch = 1, .ranks = 1};

struct order rt_order_of_rows(uint64_t seed, enum accel_split split, bool shuffle, int64_t first, int64_t count) {
  return (struct order){seed, split, shuffle, first, count, single, count, 1, 1};
}

struct order rt_order_of_windows(uint64_t seed, enum accel_split split, bool shuffle, int64_t first, int64_t count,
                                 int64_t length) {
  struct order order = {seed, split, shuffle, first, 0, single, 0, length, 1};
  if (count <= length) return order;
  order.samples = order.taken = (count - 1) / length;
  if (!shuffle || split == ACCEL_EVAL) return order;
  /* An epoch begins anywhere in the first `length` tokens, so that over epochs every cut between windows is seen. The
   * number of windows must be the same for all offsets (a position is one integer), so it is what fits behind the
   * largest; a file too short for that has fewer offsets. */
  if (order.samples > 1) order.samples = order.taken = (count - length) / length;
  int64_t spare = count - 1 - order.samples * length;
  order.offsets = spare + 1 < length ? spare + 1 : length;
  return order;
}

void rt_order_deal(struct order *order, struct dealing dealing) {
  if (order->split == ACCEL_EVAL) return;
  order->dealing = dealing;
  order->taken = rt_dealt_positions(&dealing, order->samples);
}

/* Evaluation always sees the same samples: its epoch is 0. */
static uint64_t epoch_of(const struct order *order, int64_t position) {
  return order->split == ACCEL_EVAL ? 0 : (uint64_t)(position / order->taken);
}

static int64_t offset_of(const struct order *order, uint64_t epoch) {
  if (order->offsets == 1) return 0;
  uint32_t word = accel_random(order->seed, RT_STREAM(RT_USE_OFFSET, order->split), epoch);
  return (int64_t)((uint64_t)word * (uint64_t)order->offsets >> 32);
}

int64_t rt_order_start(const struct order *order, int64_t position) {
  bool counts;
  uint64_t epoch = epoch_of(order, position);
  uint64_t index = (uint64_t)rt_dealt_sample(&order->dealing, order->samples, position % order->taken, &counts);
  if (order->shuffle) {
    uint64_t stream = RT_STREAM(RT_USE_SHUFFLE, (uint64_t)order->split << 48 | (epoch & 0xffffffffffff));
    index = rt_permute(order->seed, stream, (uint64_t)order->samples, index);
  }
  return order->first + offset_of(order, epoch) + (int64_t)index * order->stride;
}

bool rt_order_counts(const struct order *order, int64_t position) {
  bool counts;
  rt_dealt_sample(&order->dealing, order->samples, position % order->taken, &counts);
  return counts;
}
