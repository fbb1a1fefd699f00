/* A window on the content of a file: all of it, or of a compressed file the part that is unpacked. */
#ifndef ACCEL_UNPACK_WINDOW_H
#define ACCEL_UNPACK_WINDOW_H

#include "gen/unpack/unpack.h"

struct window {
  const char *bytes; /* what is seen, until the next call */
  size_t size;
  uint64_t before; /* bytes of the content before it */
  bool is_last;    /* the content ends where the window does */
  struct unpacker *unpacker;
  char *own;
  size_t capacity;
};

/* Sees the first bytes of a file, which has the `size` bytes at `file`; `as_is`: the file is the content, even where it
 * is compressed. False with a problem. To be closed also then. */
bool window_open(struct window *window, const char *path, const char *file, size_t size, bool as_is,
                 struct problem *problem);

/* Forgets the first `dropped` bytes, and sees at least one byte more unless the content ends; only where it is not the
 * last window. It is at most twice as large as what is kept, or 1 MiB. False with a problem. */
bool window_more(struct window *window, size_t dropped, struct problem *problem);

/* Bytes of the file that are not needed for what is in the window from `at` on, or after it. */
size_t window_done(const struct window *window, size_t at);

void window_close(struct window *window);

#endif
