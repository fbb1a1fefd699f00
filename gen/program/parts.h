/* Parts: what a step does in addition to the model's kernels, and how many bytes that moves. */
#ifndef ACCEL_PROGRAM_PARTS_H
#define ACCEL_PROGRAM_PARTS_H

#include "gen/program/program.h"

enum { MAX_PARTS_AROUND = 7 };

struct step_part {
  const char *name;    /* as a profile calls it: "update" */
  const char *subject; /* as a table of measurements does: "update by adamw, states float32" */
  const char *variant; /* of its kernel; "": there is one */
  double times;        /* in a step */
  double bytes;        /* of one time; 0: they do not say how long it takes */
};

/* Whether the update is one sweep over all weights. */
bool updates_in_one_sweep(const struct program *program);

/* Whether there are so few weights that one thread may be as fast as all; then how many they are counts. */
bool update_is_short(const struct program *program);

/* The update as a table of measurements calls it. */
const char *update_subject(const struct program *program);

/* The parts of a training program's step, in order; their number. */
int step_parts(const struct program *program, struct step_part parts[MAX_PARTS_AROUND]);

/* What is none of a profile's parts: the rest of a step. */
extern const char step_rest[];

#endif
