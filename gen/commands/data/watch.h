/* Files that must stay as they are while they are read: the output would be of neither state of them. */
#ifndef ACCEL_COMMANDS_DATA_WATCH_H
#define ACCEL_COMMANDS_DATA_WATCH_H

#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "runtime/base/problem.h"

/* Of a file: what differs once it was written to or replaced. */
struct file_state {
  int64_t size; /* -1: it is not there */
  struct timespec changed;
  ino_t inode;
};

struct watch {
  const char *const *files; /* the caller's */
  int count;
  struct file_state *states; /* of each at the start */
};

/* Notes the size and the time of the last change of each file, before they are opened. False without memory. A file
 * that is not there is the problem of who opens it. From here on, a file that becomes shorter ends the process with a
 * message. */
bool watch_begin(struct watch *watch, const char *const *files, int count, struct problem *problem);

/* Whether none has changed. False with a problem that says which. */
bool watch_check(const struct watch *watch, struct problem *problem);

void watch_end(struct watch *watch);

#endif
