/* Memory that the processes of a machine share. */
#ifndef RUNTIME_MPI_SEGMENT_H
#define RUNTIME_MPI_SEGMENT_H

#include "runtime/process/world.h"

#include <mpi.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How far a rank is, for the others: numbers of collectives. Each on a line of the cache of its own. */
struct progress_line {
  uint64_t key;                           /* says whose segment it is */
  _Alignas(64) _Atomic uint64_t posted;   /* its values are in its segment */
  _Alignas(64) _Atomic uint64_t finished; /* it has done its part, and reads nothing of others any more */
};

struct segment {
  struct progress_line *progress;
  char *values;
};

enum { RT_MOST_SHARING = 64 };

/* The segments of all ranks of the channel, of `bytes` each; the system backs a page when it is first touched. Of the
 * arena, `in_arena`, whole pages, is the segment's memory from then on, at the same offset. All ranks call it; false on
 * all where one of them cannot. */
bool rt_segments_open(MPI_Comm channel, struct segment *segments, char *arena, size_t bytes,
                      struct accel_byte_range in_arena);

void rt_segments_close(struct segment *segments, int count, size_t bytes);

#endif
