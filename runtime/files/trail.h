/* The sum of a file's bytes, and on the way there the sums of its beginnings: when the bytes have changed, the first
 * beginning whose sum is another tells where. */
#ifndef RUNTIME_FILES_TRAIL_H
#define RUNTIME_FILES_TRAIL_H

#include "runtime/files/checksum.h"

enum { RT_MOST_MARKS = 64 };

/* sums[i] is that of the first (i + 1) * spacing bytes. The spacing is a power of two that follows from the size. */
struct marks {
  uint64_t spacing;
  int count;
  uint64_t sums[RT_MOST_MARKS];
};

struct trail {
  struct checksum checksum;
  struct marks marks;
};

struct trail rt_trail_start(void);
void rt_trail_add(struct trail *trail, const void *bytes, size_t size);

/* The bytes [*first, *end) among which is the first that changed since `was` was taken of as many bytes. */
void rt_trail_locate(const struct marks *was, const void *bytes, size_t size, uint64_t *first, uint64_t *end);

#endif
