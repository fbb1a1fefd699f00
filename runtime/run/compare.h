/* Whether all ranks are at the same work. */
#ifndef RUNTIME_RUN_COMPARE_H
#define RUNTIME_RUN_COMPARE_H

#include "include/accel/program.h"
#include "runtime/data/data.h"

/* Ends all with one message when ranks do not run the same program, of the same job, on the same data. All ranks call
 * it. */
void rt_compare_ranks(const struct accel_program *program, const struct data *data);

#endif
