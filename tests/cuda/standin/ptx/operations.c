#include "tests/cuda/standin/ptx/operations.h"

#include <stdlib.h>

#include "tests/cuda/standin/core.h"
#include "tests/cuda/standin/ptx/checks.h"

enum { GRANULE = 4 };

static struct {
  uint64_t from, to;
  uint32_t *writers; /* of each granule, the operation that wrote it last */
} kept;
static struct {
  uint32_t number;         /* of the program's */
  uint32_t present, wrote; /* counts of operations that ran: this one, and the last that left something */
} at_hand;

void operations_keep(const void *from, size_t bytes) {
  kept.from = (uint64_t)(uintptr_t)from;
  kept.to = kept.from + bytes;
  kept.writers = calloc(bytes / GRANULE + 1, sizeof *kept.writers);
  if (kept.writers == NULL) fault("no memory");
}

void operations_launch(uint32_t number) {
  if (number != at_hand.number) at_hand.present++;
  at_hand.number = number;
}

void check_kept(struct warp *warp, const struct instruction *of, int lane, uint64_t address, unsigned bytes,
                enum access access) {
  if (at_hand.number == 0 || address < kept.from || address + bytes > kept.to) return;
  if (access == WRITES) at_hand.wrote = at_hand.present;
  const uint64_t last = (address + bytes - 1 - kept.from) / GRANULE;
  for (uint64_t i = (address - kept.from) / GRANULE; i <= last; i++) {
    if (access != READS)
      kept.writers[i] = at_hand.present;
    else if (at_hand.wrote == at_hand.present && kept.writers[i] != at_hand.present)
      wrong(warp, of, lane, "byte %llu of the partial sums, which no kernel of this operation wrote",
            (unsigned long long)i * GRANULE);
  }
}
