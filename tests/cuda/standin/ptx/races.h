/* Who has touched a piece of memory in a launch, and whether two accesses have an order.
 *
 * Time is counted in the barriers of blocks: a launch runs its blocks one after the other, so that a time says of which
 * block it is. Two accesses of a block have an order if a barrier of the block is between them or, in a warp, one of
 * the warp; two blocks of a launch have none. */
#ifndef TESTS_CUDA_PTX_RACES_H
#define TESTS_CUDA_PTX_RACES_H

#include <stdbool.h>
#include <stdint.h>

enum access { READS, WRITES, UPDATES /* as one: an atomic operation */ };

/* Who did something last: 0: nobody, a thread's number + 1, or several, which are said by the widest of these. */
enum { SEVERAL_OF_WARP = 2048 /* + its number */, SEVERAL = 4096, SEVERAL_BLOCKS = 8192, BY_ATOMICS = 0x8000 };

struct touch {
  uint32_t write, read;           /* times */
  uint16_t write_warp, read_warp; /* the lower bits of the warp's own time */
  uint16_t writer, reader;        /* readers since the last write; BY_ATOMICS: the writers were atomic operations */
};

/* A thread that accesses memory now. */
struct who {
  uint32_t now, begin; /* of its block */
  uint32_t oldest;     /* what is older has nothing to do with this access */
  uint16_t own, warp_time;
  unsigned warp;
};

/* Whether an access may follow the last write, and a write also the reads since. */
bool touch_follows_write(const struct touch *touch, const struct who *who, enum access access);
bool touch_follows_reads(const struct touch *touch, const struct who *who, enum access access);

/* Notes an access that may follow. */
void touch_note(struct touch *touch, const struct who *who, enum access access);

#endif
