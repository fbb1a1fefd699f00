/* Files: outputs of a command, whole or not at all; their digests, and their names as other folders see them. */
#ifndef ACCEL_COMMANDS_CLI_FILES_H
#define ACCEL_COMMANDS_CLI_FILES_H

#include <stdbool.h>
#include <stddef.h>

#include "gen/base/arena.h"
#include "gen/commands/cli/inputs.h"

/* Writes `length` bytes to `path` by a file next to it and a rename, so that a reader sees the old file or the new one.
 * A `path` of "-" is standard output; one of the `inputs` is refused. False after a message on standard error; then
 * nothing has changed. */
bool write_file(const struct inputs *inputs, const char *path, const char *bytes, size_t length);

/* The same of lines for people, as a terminal that is standard output shows them. */
bool write_lines(const struct inputs *inputs, const char *path, const char *text);

/* Whether a file is a program, not a text: an object of ELF. */
bool is_program(const char *path);

/* Whether a folder has this name. */
bool is_folder(const char *path);

/* SHA-256 as 64 hexadecimal digits: of bytes; of a file, NULL when it cannot be read. */
const char *digest_of(struct arena *arena, const char *bytes, size_t length);
const char *file_digest(struct arena *arena, const char *path);

/* The name of the file `path`, which exists, for someone in `folder`: "../models/gpt2.c". Where there is no way that is
 * known, the path as it is. */
const char *name_from(struct arena *arena, const char *folder, const char *path);

/* A word as a shell reads it, in quotes where it needs them. */
const char *shell_word(struct arena *arena, const char *word);

/* Makes the folders above a file that are missing. False after a message on standard error. */
bool make_folders(struct arena *arena, const char *path);

#endif
