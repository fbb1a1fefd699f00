/* Prints which samples each batch of an epoch has. From standard input, a case a line: samples, batch, ranks, rank,
 * keeps_last, even, dispatches, the first batch to print. A case gives a line, its batches between semicolons. */
#include "runtime/data/dealing.h"

#include <inttypes.h>
#include <stdio.h>

static void print_batch(const struct dealing *dealing, int64_t samples, int64_t first) {
  const char *between = "";
  for (int64_t i = 0; i < dealing->batch; i++) {
    bool counts;
    int64_t sample = rt_dealt_sample(dealing, samples, first + i, &counts);
    if (sample < 0 || sample >= samples) printf("outside");
    if (!counts) continue;
    printf("%s%" PRId64, between, sample);
    between = ",";
  }
}

int main(void) {
  int64_t samples, rank, from;
  struct dealing dealing = {0};
  int keeps, even, dispatches;
  while (scanf("%" SCNd64 " %" SCNd64 " %" SCNd64 " %" SCNd64 " %d %d %d %" SCNd64, &samples, &dealing.batch,
               &dealing.ranks, &rank, &keeps, &even, &dispatches, &from) == 8) {
    dealing.keeps_last = keeps;
    dealing.even = even;
    dealing.dispatches = dispatches;
    int64_t batches = rt_dealt_positions(&dealing, samples) / (dealing.batch * dealing.ranks);
    for (int64_t number = from; number < batches; number++) {
      if (number > from) putchar(';');
      print_batch(&dealing, samples, rt_dealt_first(&dealing, number, rank));
    }
    putchar('\n');
  }
  return 0;
}
