/* Foreign: functions of other frameworks, by which who writes a model calls for ours. */
#ifndef ACCEL_MODEL_FOREIGN_H
#define ACCEL_MODEL_FOREIGN_H

#include "gen/base/diag.h"

struct foreign {
  const char *names; /* as the framework spells them, each between spaces */
  const char *whose; /* "PyTorch" */
  const char *ours;  /* a call that does the same; NULL: there is none */
  const char *why;   /* without a call: why none is needed, or what there is instead; NULL: nothing to say */
};

extern const struct foreign foreign_functions[];
extern const int foreign_count;

/* Adds a help to the newest error, which is about a function that does not exist: what a function of the name is called
 * here, or else the tensor function with the nearest name. False when there is nothing to say. */
bool foreign_help(struct arena *arena, const char *name, struct diagnostics *diags);

#endif
