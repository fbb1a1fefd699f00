/* ZIP archives (PKWARE's APPNOTE.TXT) of files that are stored as they are, as PyTorch and numpy.savez write them.
 * Knows nothing of what is in them. */
#ifndef RUNTIME_FILES_ZIP_H
#define RUNTIME_FILES_ZIP_H

#include "runtime/base/problem.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A file in it; its name has no NUL at its end. */
struct zip_entry {
  const uint8_t *name, *bytes;
  size_t length, size; /* of the name; of the file */
};

struct zip {
  struct zip_entry *entries; /* by their names */
  int count;
};

/* Whether a file begins as such an archive does. */
bool rt_zip_is(const uint8_t *bytes, size_t size);

/* Reads the directory of the archive in `bytes`, into which the entries point. Entries that are compressed or encrypted
 * are errors, and so are two of one name. */
bool rt_zip_read(struct zip *zip, const char *path, const uint8_t *bytes, size_t size, struct problem *problem);

/* The entry whose name is the `length` bytes at `name`; NULL: none. */
const struct zip_entry *rt_zip_find(const struct zip *zip, const void *name, size_t length);

void rt_zip_free(struct zip *zip);

#endif
