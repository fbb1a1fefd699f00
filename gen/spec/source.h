/* Source: a job file as text, and the location of each of its characters.
 *
 * libyaml counts characters and knows other line ends than a compiler's message does, so locations are taken from
 * its character index, with this map. */
#ifndef ACCEL_SPEC_SOURCE_H
#define ACCEL_SPEC_SOURCE_H

#include <stddef.h>
#include <stdint.h>

#include "gen/base/arena.h"
#include "gen/base/diag.h"

struct spec_source {
  const char *name; /* as the user named it; for an override: the override */
  bool whole;       /* an override: locations are the text as a whole */
  const char *text; /* valid UTF-8 without a byte order mark, NUL-terminated */
  size_t length;
  uint32_t *byte_of; /* byte offset of each character, and of the end */
  size_t characters;
  uint32_t *line_starts; /* byte offset of each line */
  int lines;
  size_t skipped; /* bytes of a byte order mark before the text: columns of line 1 count them */
};

/* The bytes of a job file followed by a NUL. NULL with an error at `where`, which names the file, when it cannot be
 * read.
 */
char *source_read(struct arena *arena, const char *file, struct location where, size_t *length,
                  struct diagnostics *diags);

/* The source of text in memory, followed by a NUL. NULL with an error when it is not text, or empty. */
struct spec_source *source_of(struct arena *arena, const char *name, const char *text, size_t length, bool whole,
                              struct diagnostics *diags);

/* The location from one character index to another (exclusive), which may be after the line's end. */
struct location source_location(const struct spec_source *source, size_t from, size_t to);

#endif
