/* Prefix checksums: the checksum of a file's bytes, and those of its prefixes of growing length: when the bytes have
 * changed, the first prefix whose checksum differs locates the change. */
#ifndef RUNTIME_FILES_PREFIX_CHECKSUMS_H
#define RUNTIME_FILES_PREFIX_CHECKSUMS_H

#include "runtime/files/checksum.h"

enum { RT_MOST_MARKS = 64 };

/* sums[i] is that of the first (i + 1) * spacing bytes. The spacing is a power of two that follows from the size. */
struct marks {
  uint64_t spacing;
  int count;
  uint64_t sums[RT_MOST_MARKS];
};

struct prefix_checksums {
  struct checksum checksum;
  struct marks marks;
};

struct prefix_checksums rt_prefix_checksums_start(void);
void rt_prefix_checksums_add(struct prefix_checksums *checksums, const void *bytes, size_t size);

/* The bytes [*first, *end) among which is the first that changed since `was` was taken of as many bytes. */
void rt_prefix_checksums_locate(const struct marks *was, const void *bytes, size_t size, uint64_t *first,
                                uint64_t *end);

#endif
