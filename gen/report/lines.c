#include "gen/report/lines.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BLOCK = 1 << 18, MOST = 1 << 22 };

bool back_lines_open(struct back_lines *lines, const char *path) {
  struct stat status;
  *lines = (struct back_lines){.file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  if (lines->file < 0) return false;
  int reason = fstat(lines->file, &status) != 0 ? errno : S_ISDIR(status.st_mode) ? EISDIR : 0;
  if (reason == 0 && !S_ISREG(status.st_mode)) reason = EINVAL;
  lines->capacity = 2 * BLOCK;
  lines->buffer = reason == 0 ? malloc(lines->capacity) : NULL;
  lines->before = status.st_size;
  if (lines->buffer != NULL) return true;
  back_lines_close(lines);
  errno = reason != 0 ? reason : ENOMEM;
  return false;
}

/* Makes space for a block before what is in the buffer. A line that has no space is cut off at its beginning. */
static bool make_space(struct back_lines *lines) {
  if (lines->end >= MOST) {
    lines->too_long = true;
    lines->end = lines->searched = 0;
  }
  if (lines->end + BLOCK <= lines->capacity) return true;
  char *larger = realloc(lines->buffer, 2 * lines->capacity);
  if (larger == NULL) {
    errno = ENOMEM;
    return false;
  }
  lines->buffer = larger;
  lines->capacity *= 2;
  return true;
}

/* Reads the block before what is in the buffer. A file that became shorter since ends with what is left of it. */
static bool read_block(struct back_lines *lines) {
  const size_t count = lines->before < BLOCK ? (size_t)lines->before : BLOCK;
  if (!make_space(lines)) return false;
  memmove(lines->buffer + count, lines->buffer, lines->end);
  for (size_t done = 0; done < count;) {
    const ssize_t got =
        pread(lines->file, lines->buffer + done, count - done, lines->before - (int64_t)count + (int64_t)done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return false;
    if (got == 0) memset(lines->buffer + done, '\n', count - done);
    done += got == 0 ? count - done : (size_t)got;
  }
  lines->before -= (int64_t)count;
  lines->end += count;
  return true;
}

/* The place after the last line end of the buffer; 0: there is none. */
static size_t after_line_end(struct back_lines *lines) {
  size_t at = lines->end - lines->searched;
  while (at > 0 && lines->buffer[at - 1] != '\n') at--;
  lines->searched = lines->end;
  return at;
}

bool back_lines_next(struct back_lines *lines, struct back_line *line) {
  errno = 0;
  if (lines->is_done) return false;
  size_t begin;
  while ((begin = after_line_end(lines)) == 0 && lines->before > 0)
    if (!read_block(lines)) return false;
  lines->is_done = begin == 0;
  *line = (struct back_line){lines->buffer + begin, lines->end - begin, lines->too_long};
  lines->end = begin > 0 ? begin - 1 : 0;
  lines->searched = 0;
  lines->too_long = false;
  return true;
}

void back_lines_close(struct back_lines *lines) {
  if (lines->file >= 0) close(lines->file);
  free(lines->buffer);
  lines->buffer = NULL;
  lines->file = -1;
}
