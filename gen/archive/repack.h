/* ZIP archives, unpacked into ones that are not compressed, by libarchive. A build without that library has
 * gen/without/archive.c instead. */
#ifndef ACCEL_ARCHIVE_REPACK_H
#define ACCEL_ARCHIVE_REPACK_H

#include <stdbool.h>
#include <stddef.h>

#include "runtime/base/problem.h"

/* What takes the bytes of the new archive. */
struct archive_sink {
  /* False with a problem. */
  bool (*add)(void *context, const void *bytes, size_t size, struct problem *problem);
  void *context;
};

/* Writes the files of the ZIP archive of `size` bytes at `bytes` into one that stores them as they are, in their order.
 * Only files that begin with `magic` and whose names end in `ending` may be in it. 64 KiB of it are in memory. False
 * with a problem, which names `path`: no such archive, a file that is none of these, one that is encrypted or damaged.
 */
bool archive_repack(const char *path, const void *bytes, size_t size, const char *ending, const char *magic,
                    struct archive_sink sink, int *files, struct problem *problem);

#endif
