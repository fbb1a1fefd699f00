/* How long the transfers of an update take that has its states on a disk, by themselves: offload.py runs it.
 *
 * usage: offload_transfers FOLDER STATES BUCKETS BYTES SLOTS ROUNDS     BYTES of a state in a bucket, so many buckets
 * at a time; prints milliseconds a round */
#include "runtime/base/clock.h"
#include "runtime/files/scratch.h"
#include "runtime/files/transfers.h"
#include "runtime/process/arena.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct shape {
  size_t states, buckets, bytes, slots;
};

static void load(struct transfers *transfers, struct transfer_file *file, const struct shape *shape, char *slots,
                 size_t bucket) {
  for (size_t s = 0; s < shape->states; s++)
    rt_transfers_read(transfers, file, (s * shape->buckets + bucket) * shape->bytes,
                      slots + (bucket % shape->slots * shape->states + s) * shape->bytes, shape->bytes);
}

static bool run_round(struct transfers *transfers, struct transfer_file *file, const struct shape *shape, char *slots,
                      struct problem *problem) {
  for (size_t b = 0; b < shape->slots && b < shape->buckets; b++) load(transfers, file, shape, slots, b);
  for (size_t b = 0; b < shape->buckets; b++) {
    char *slot = slots + b % shape->slots * shape->states * shape->bytes;
    if (!rt_transfers_wait(transfers, slot, shape->states * shape->bytes, problem)) return false;
    for (size_t s = 0; s < shape->states; s++)
      rt_transfers_write(transfers, file, (s * shape->buckets + b) * shape->bytes, slot + s * shape->bytes,
                         shape->bytes);
    if (b + shape->slots < shape->buckets) load(transfers, file, shape, slots, b + shape->slots);
  }
  return rt_transfers_wait(transfers, NULL, 0, problem);
}

int main(int argc, char **argv) {
  struct problem problem = {0};
  struct scratch scratch;
  if (argc != 7) return 2;
  const struct shape shape = {strtoul(argv[2], NULL, 10), strtoul(argv[3], NULL, 10), strtoul(argv[4], NULL, 10),
                              strtoul(argv[5], NULL, 10)};
  struct arena arena; /* as of a trainer: of large pages */
  bool good = rt_arena_open(&arena, shape.slots * shape.states * shape.bytes, &problem) &&
              rt_scratch_open(&scratch, argv[1], shape.states * shape.buckets * shape.bytes, &problem);
  struct transfers *transfers = NULL;
  if (good) memset(arena.base, 1, shape.slots * shape.states * shape.bytes);
  if (good) transfers = rt_transfers_open(TRANSFERS_AS_IS_BEST, &problem);
  good = transfers != NULL;
  struct transfer_file file = {scratch.file, scratch.direct, argv[1], ""};
  for (long i = 0; good && i < strtol(argv[6], NULL, 10); i++) {
    const double began = rt_now();
    good = run_round(transfers, &file, &shape, arena.base, &problem);
    printf("%.3f\n", 1e3 * (rt_now() - began));
  }
  if (!good) fprintf(stderr, "error: %s\n", problem.what);
  return good ? 0 : 1;
}
