#include "runtime/data/order.h"

#include "runtime/random/permutation.h"
#include "runtime/random/philox.h"

uint64_t rt_order_stream(enum accel_split split, uint64_t epoch) {
  return RT_STREAM(RT_USE_SHUFFLE, (uint64_t)split << 48 | (epoch & 0xffffffffffff));
}

struct order rt_order_of_rows(uint64_t seed, enum accel_split split, bool shuffle, int64_t first, int64_t count) {
  return (struct order){seed, split, shuffle, first, count, 1, 1, rt_order_stream(split, 0)};
}

struct order rt_order_of_sequences(uint64_t seed, enum accel_split split, bool shuffle, int64_t first, int64_t count,
                                   int64_t length) {
  struct order order = {seed, split, shuffle, first, 0, length, 1, rt_order_stream(split, 0)};
  if (count <= length) return order;
  order.samples = (count - 1) / length;
  if (!shuffle || split == ACCEL_EVAL) return order;
  /* An epoch begins anywhere in the first `length` tokens, so that over epochs every cut between sequences is seen. The
   * number of sequences must be the same for all offsets (a position is one integer), so it is what fits after the
   * largest; a file too short for that has fewer offsets. */
  if (order.samples > 1) order.samples = (count - length) / length;
  int64_t spare = count - 1 - order.samples * length;
  order.offsets = spare + 1 < length ? spare + 1 : length;
  return order;
}

static int64_t offset_of(const struct order *order, uint64_t epoch) {
  if (order->offsets == 1) return 0;
  uint32_t word = accel_random(order->seed, RT_STREAM(RT_USE_OFFSET, order->split), epoch);
  return (int64_t)((uint64_t)word * (uint64_t)order->offsets >> 32);
}

int64_t rt_order_at(const struct order *order, uint64_t epoch, int64_t index) {
  return order->first + offset_of(order, epoch) + index * order->stride;
}

int64_t rt_order_start(const struct order *order, int64_t position) {
  /* Evaluation always sees the same samples: its epoch is 0. */
  uint64_t epoch = order->split == ACCEL_EVAL ? 0 : (uint64_t)(position / order->samples);
  uint64_t index = (uint64_t)(position % order->samples);
  if (order->shuffle) index = rt_permute(order->seed, order->stream + epoch, (uint64_t)order->samples, index);
  return rt_order_at(order, epoch, (int64_t)index);
}
