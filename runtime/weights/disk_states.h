/* States that a program has on a disk while it trains (program->disk). A checkpoint is written from the mapped file and
 * read into it, as from and into the arena. */
#ifndef RUNTIME_WEIGHTS_DISK_STATES_H
#define RUNTIME_WEIGHTS_DISK_STATES_H

#include "include/accel/disk.h"
#include "runtime/base/problem.h"
#include "runtime/files/scratch.h"

/* Opened before states are filled. A program without states on a disk links none of what follows. */
struct accel_disk {
  bool (*open)(const struct accel_program *program, struct problem *problem);
  char *(*array)(int state); /* where it is mapped */
  void (*close)(void);
  const struct scratch *scratch; /* the file */
};

/* Whether a state is there. */
static inline bool rt_is_on_disk(const struct accel_program *program, const struct accel_state *state) {
  const int index = (int)(state - program->states);
  return index >= program->disk.first && index < program->disk.first + program->disk.count;
}

#endif
