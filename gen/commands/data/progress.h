/* A bar at the end of a terminal's standard error: how much of a long work is done. Elsewhere there is none. */
#ifndef ACCEL_COMMANDS_DATA_PROGRESS_H
#define ACCEL_COMMANDS_DATA_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct progress {
  bool shows;
  double started, shown; /* when, in seconds */
  uint64_t first, all;   /* bytes that were done at the start, and of the whole work */
};

/* Begins with `all` bytes, of which `done` are done. */
struct progress progress_begin(uint64_t done, uint64_t all);

/* Shows the bytes that are done, a few times a second at most. */
void progress_tell(struct progress *progress, uint64_t done);

/* Takes the bar away. */
void progress_end(const struct progress *progress);

#endif
