/* XXH64 (Yann Collet, https://github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md), seed 0: against damage, not
 * against malice, and faster than a disk. `xxhsum -H1` prints the same. */
#ifndef RUNTIME_FILES_CHECKSUM_H
#define RUNTIME_FILES_CHECKSUM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The sum of bytes that come in pieces. */
struct checksum {
  uint64_t lane[4], total;
  uint8_t rest[32]; /* what does not fill a stripe yet */
  size_t n_rest;
};

struct checksum rt_checksum_start(void);
void rt_checksum_add(struct checksum *sum, const void *bytes, size_t size);
uint64_t rt_checksum_end(const struct checksum *sum);

/* The sum of bytes that are all there. */
uint64_t rt_checksum(const void *bytes, size_t size);

/* Of the size, and of `pieces` pieces of 64 KiB from all over the bytes, the last ones among them: little to read of a
 * large file. One that is no larger than the pieces is summed whole. */
enum { RT_MOST_PIECES = 256 };
uint64_t rt_checksum_sampled(const void *bytes, size_t size, int pieces);

/* The same of an open file of `size` bytes, which is not mapped. False with errno where it cannot be read. */
bool rt_checksum_sampled_file(int file, size_t size, int pieces, uint64_t *result);

#endif
