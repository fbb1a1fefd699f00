/* Members of tar archives (POSIX ustar and pax, GNU, V7), read one after another by libarchive. Nothing is written to a
 * disk, and names are only names. A build without that library has gen/without/archive.c instead. */
#ifndef ACCEL_ARCHIVE_ARCHIVE_H
#define ACCEL_ARCHIVE_ARCHIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/base/problem.h"

/* Where the bytes of an archive come from: *size of them, 0 at the end, which stay until the next call. False with a
 * problem. */
typedef bool archive_source(void *context, const void **bytes, size_t *size, struct problem *problem);

struct archive_reader;

struct archive_member {
  const char *name; /* until the next call */
  uint64_t size;    /* bytes of its content */
  uint64_t at;      /* the byte of the archive where its header begins */
};

/* Begins with an archive; `path` is for messages and stays the caller's. NULL with a problem. */
struct archive_reader *archive_reader_new(const char *path, archive_source *source, void *context,
                                          struct problem *problem);

enum archive_found { ARCHIVE_NO_MEMBER, ARCHIVE_MEMBER, ARCHIVE_BAD };

/* The next regular file; folders, links and devices are passed over. ARCHIVE_NO_MEMBER after the mark that ends an
 * archive. ARCHIVE_BAD with a problem: the archive is cut or damaged, or has a sparse file, whose size is what its
 * header says. */
enum archive_found archive_reader_next(struct archive_reader *reader, struct archive_member *member,
                                       struct problem *problem);

/* Reads the content of the newest member, all `size` bytes of it. False with a problem. */
bool archive_reader_read(struct archive_reader *reader, void *out, size_t size, struct problem *problem);

void archive_reader_free(struct archive_reader *reader);

#endif
