/* Prints which samples each batch of an epoch has. From standard input, a case a line: samples, batch, ranks, rank,
 * keeps_last, even, dispatches, the first batch to print. A case gives a line, its batches between semicolons. */
#include "runtime/data/batch_sharding.h"

#include <inttypes.h>
#include <stdio.h>

static void print_batch(const struct batch_sharding *sharding, int64_t samples, int64_t first) {
  const char *between = "";
  for (int64_t i = 0; i < sharding->batch; i++) {
    bool counts;
    int64_t sample = rt_batch_sharding_sample(sharding, samples, first + i, &counts);
    if (sample < 0 || sample >= samples) printf("outside");
    if (!counts) continue;
    printf("%s%" PRId64, between, sample);
    between = ",";
  }
}

int main(void) {
  int64_t samples, rank, from;
  struct batch_sharding sharding = {0};
  int keeps, even, dispatches;
  while (scanf("%" SCNd64 " %" SCNd64 " %" SCNd64 " %" SCNd64 " %d %d %d %" SCNd64, &samples, &sharding.batch,
               &sharding.ranks, &rank, &keeps, &even, &dispatches, &from) == 8) {
    sharding.keeps_last = keeps;
    sharding.even = even;
    sharding.dispatches = dispatches;
    int64_t batches = rt_batch_sharding_positions(&sharding, samples) / (sharding.batch * sharding.ranks);
    for (int64_t number = from; number < batches; number++) {
      if (number > from) putchar(';');
      print_batch(&sharding, samples, rt_batch_sharding_first(&sharding, number, rank));
    }
    putchar('\n');
  }
  return 0;
}
