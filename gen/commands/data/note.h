/* A note of how far a long work is, in OUTPUT.progress, from which the same command resumes after a kill. */
#ifndef ACCEL_COMMANDS_DATA_NOTE_H
#define ACCEL_COMMANDS_DATA_NOTE_H

#include <stdbool.h>
#include <stdio.h>

#include "runtime/base/problem.h"
#include "runtime/files/files.h"

struct note {
  char path[4096];
  double noted, took;   /* when the last one was written, and how long that took; 0: none was */
  double opened;        /* the one that is written */
  struct writer writer; /* of it */
};

/* The note of an output, which is not due for a while. False with a problem. */
bool note_begin(struct note *note, const char *output, struct problem *problem);

/* Whether it is time for the next one: a killed run loses a second, or what 20 notes take. */
bool note_is_due(const struct note *note);

/* Opens a note, once all of `file`, called `name`, is there to stay: a stream to write it to, for note_close. NULL with
 * a problem. */
FILE *note_open(struct note *note, int file, const char *name, struct problem *problem);

/* Closes the stream, and replaces the previous note by it. False with a problem. */
bool note_close(struct note *note, FILE *stream, struct problem *problem);

#endif
