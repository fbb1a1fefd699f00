/* Hooks: the functions of a job's hooks.source, found in its C before a program calls them. */
#ifndef ACCEL_MODEL_HOOKS_H
#define ACCEL_MODEL_HOOKS_H

#include "gen/spec/job.h"

/* Whether the job's source of hooks defines every function that it names, each with the type of a hook. False with
 * errors in `diags` at the function or at the key. Other errors of that file are the compiler's to report. */
bool hooks_check(struct arena *arena, const struct job *job, struct diagnostics *diags);

#endif
