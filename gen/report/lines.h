/* The lines of a file from its last one to its first, in memory that does not grow with the file. */
#ifndef ACCEL_REPORT_LINES_H
#define ACCEL_REPORT_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct back_lines {
  int file;
  char *buffer;
  size_t capacity;
  int64_t before;  /* bytes of the file before those of the buffer */
  size_t end;      /* bytes of the buffer that no line has taken */
  size_t searched; /* of these, at their end, without a line's end */
  bool too_long;   /* the line that is looked for is cut off */
  bool is_done;
};

struct back_line {
  const char *text; /* without its end; until the next call */
  size_t length;
  bool too_long; /* it has more than 4 MiB, and `text` is not all of it */
};

/* Opens a file. False, and why in errno: it cannot be read, or is none with a size (EINVAL), such as a pipe. */
bool back_lines_open(struct back_lines *lines, const char *path);

/* The line before the one of the last call; a file of N line ends has N + 1 lines, of which the last one is empty where
 * the file ends with a line end. False: there is none, or the file cannot be read: then errno is not 0. */
bool back_lines_next(struct back_lines *lines, struct back_line *line);

void back_lines_close(struct back_lines *lines);

#endif
