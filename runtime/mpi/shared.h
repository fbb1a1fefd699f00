/* Collectives among ranks of one machine, through memory that they share. A rank copies what others need of its values
 * into its segment, where the others read it; nobody waits for a message, and who comes last finds the work of the
 * others done. Sums are those of a tree over neighbours (0 + 1) + (2 + 3), whoever comes when. */
#ifndef RUNTIME_MPI_SHARED_H
#define RUNTIME_MPI_SHARED_H

#include "include/accel/trainer.h"
#include "runtime/process/world.h"

#include <stdint.h>

/* The ranks along an axis, each with a segment for what is added up or for what is gathered. */
struct shared;
enum shared_use { SHARED_SUMS, SHARED_GATHERS, SHARED_USES };

/* Makes the segments of this machine's ranks, once the arena is known and the channels are divided. Where ranks along
 * an axis are on several machines, or the system shares no memory, there are none. All ranks call it.
 *
 * What ranks gather along dp_shard from parts->gathered, and what they add up along it, or where they divide nothing
 * along dp_replicate, of parts->summed, is not copied to where others read it: it is there. So what is gathered is to
 * be written only where all ranks have done something together since they waited for the last gather. */
void rt_shared_open(void *arena, size_t bytes, const struct arena_parts *parts);
void rt_shared_close(void);

/* What carries the collective of `values`; NULL: MPI does. */
struct shared *rt_shared_along(enum accel_axis axis, enum shared_use use, const void *values);

/* Whether others read in the arena itself of what its ranks add up or gather. */
bool rt_shared_is_placed(const struct shared *shared);

/* How many ranks it carries for. */
int rt_shared_ranks(const struct shared *shared);

/* What is done with values in shards, `shard_size` elements for each rank and `last` for the last one. */
enum shared_kind { SHARED_ALL_REDUCE, SHARED_REDUCE_SCATTER, SHARED_ALL_GATHER };

struct shared_item {
  enum shared_kind kind;
  enum accel_dtype dtype; /* ACCEL_FLOAT32, ACCEL_BFLOAT16 or ACCEL_FLOAT16, in which each sum is rounded */
  char *values;           /* of all shards, in the arena */
  char *own;              /* the rank's own shard, as far into the arena as the others'; NULL: it is among the values */
  size_t shard_size, last;
  bool by_tree; /* sums are those of a tree that ends with neighbours: (0 + 2) + (1 + 3); of a power of two ranks */
};

/* Begins it; the number by which it is waited for. Nothing of its values is touched until it has ended. */
uint64_t rt_shared_begin(struct shared *shared, struct shared_item item);

/* Does of all that is in flight, everywhere, what the other ranks are ready for. */
void rt_shared_advance(void);

/* Whether the collective of that number has ended. */
bool rt_shared_has_ended(const struct shared *shared, uint64_t number);

#endif
