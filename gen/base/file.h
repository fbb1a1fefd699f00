/* Files as bytes. */
#ifndef ACCEL_BASE_FILE_H
#define ACCEL_BASE_FILE_H

#include <stddef.h>
#include <stdio.h>

#include "gen/base/arena.h"

/* The bytes of a file followed by a NUL, in `arena`; NULL, and why in errno, when it cannot be read or has more
 * than 256 MiB. */
const char *read_bytes(struct arena *arena, const char *path, size_t *length);

/* The same of what is left of a stream, which stays open. */
const char *read_stream(struct arena *arena, FILE *file, size_t *length);

#endif
