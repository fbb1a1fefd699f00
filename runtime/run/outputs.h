/* What a run writes, compared with what it reads. */
#ifndef RUNTIME_RUN_OUTPUTS_H
#define RUNTIME_RUN_OUTPUTS_H

#include "runtime/base/problem.h"

#include <stdbool.h>

struct accel_run;

/* Whether a fresh run leaves its data and the weights that it starts from as they are: whether none of them is a file
 * of the project's folder that it will write. */
bool rt_outputs_spare_inputs(const struct accel_run *run, struct problem *problem);

#endif
