/* A note of how far a long work is, in OUTPUT.progress, from which the same command resumes after a kill. */
#ifndef ACCEL_COMMANDS_DATA_NOTE_H
#define ACCEL_COMMANDS_DATA_NOTE_H

#include <stdbool.h>
#include <stddef.h>

#include "runtime/base/problem.h"

struct note {
  char path[4096];
  double noted, took; /* when the last one was written, and how long that took; 0: none was */
};

/* The note of an output, which is not due for a while. False with a problem. */
bool note_begin(struct note *note, const char *output, struct problem *problem);

/* Whether it is time for the next one: a killed run loses a second, or what 20 notes take. */
bool note_is_due(const struct note *note);

/* Writes the `size` bytes of a note, which was begun to be made at `started`, once all of `file`, called `name`, is
 * there to stay. False with a problem. */
bool note_write(struct note *note, double started, int file, const char *name, const char *text, size_t size,
                struct problem *problem);

#endif
