/* Files: outputs of a command, whole or not at all. */
#ifndef ACCEL_COMMANDS_FILES_H
#define ACCEL_COMMANDS_FILES_H

#include <stdbool.h>
#include <stddef.h>

#include "gen/base/arena.h"

/* Writes `length` bytes to `path` by a file beside it and a rename, so that a reader sees the old file or the new one.
 * A `path` of "-" is standard output. False once a message stands on standard error; then nothing has changed. */
bool write_file(struct arena *arena, const char *path, const char *bytes, size_t length);

#endif
