/* Format: the white space of a C or CUDA program, as .clang-format states it for the C that templates write.
 *
 * Text in, text out: what is broken where and how far it is indented is decided here, and everything else stays as it
 * was written, down to the spaces between two tokens of a line. So a template writes its statements on one line or on
 * many, at any depth. This folder knows nothing of programs or templates; of the tree it uses gen/base alone. */
#ifndef ACCEL_FORMAT_FORMAT_H
#define ACCEL_FORMAT_FORMAT_H

#include <stdbool.h>
#include <stddef.h>

#include "gen/base/arena.h"

/* Text that was written at one position and now is at another: a token, a line of a comment or of a directive, or the
 * line break of a blank line. */
struct format_move {
  size_t from, length; /* bytes of the text as it was written */
  int line;            /* of the formatted text, from 1 */
};

struct format_output {
  const char *text; /* followed by a NUL */
  size_t length;
  struct format_move *moves; /* in the order of both texts; NULL unless requested */
  int count;
};

/* Formats the `length` bytes of `text`; with_moves asks for what went where. Brackets that do not match, and statements
 * that do not end, are carried along as they come. The output lives in the arena. */
struct format_output format_program(struct arena *arena, const char *text, size_t length, bool with_moves);

#endif
