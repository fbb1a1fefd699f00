/* Parts: what a step does in addition to the model's kernels, and how many bytes that moves. */
#ifndef ACCEL_PLAN_KERNELS_PARTS_H
#define ACCEL_PLAN_KERNELS_PARTS_H

#include "gen/program/program.h"

enum { MAX_PARTS_AROUND = 6 };

struct step_part {
  const char *name;    /* as a profile calls it: "update" */
  const char *subject; /* as a table of measurements does: "update by adamw, states float32" */
  const char *variant; /* of its kernel; "": there is one */
  double times;        /* in a step */
  double bytes;        /* of one time; 0: they do not say how long it takes */
};

/* Whether the update is one sweep over all weights. */
bool updates_in_one_sweep(const struct program *program);

/* Who does that sweep: all threads, or one where sharing it out would cost more than running it. After the figures. */
void choose_update(struct program *program);

/* The parts of a training program's step, in order; their number. */
int step_parts(const struct program *program, struct step_part parts[MAX_PARTS_AROUND]);

/* What is none of a profile's parts: the rest of a step. */
extern const char step_rest[];

/* What a kernel must move: each operand once, and what it adds to twice. */
double kernel_bytes(const struct kernel *kernel);

#endif
