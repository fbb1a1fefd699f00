/* Inputs: what a command reads, so that no output replaces it. */
#ifndef ACCEL_COMMANDS_CLI_INPUTS_H
#define ACCEL_COMMANDS_CLI_INPUTS_H

#include <stdbool.h>

#include "gen/base/arena.h"

struct inputs {
  struct arena *arena;
  struct input {
    const char *what, *path; /* "the job", "quickstart.yaml" */
  } *items;
  int count, capacity;
};

/* None yet. */
struct inputs inputs_in(struct arena *arena);

/* Adds a file, or a folder of which every file that is there is read. A NULL `path` adds nothing. */
void inputs_add(struct inputs *inputs, const char *what, const char *path);

/* Whether `output` is none of them, by whatever name or link; "-" and a file that is not there are none. False after a
 * message on standard error that says which. */
bool inputs_spare(const struct inputs *inputs, const char *output);

#endif
