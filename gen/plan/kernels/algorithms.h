/* Algorithms: by which of those of its device's library each matmul of a program is computed. A kernel may hold
 * several matmuls, and the optimizer has some of its own; each has a choice of its own. */
#ifndef ACCEL_PLAN_KERNELS_ALGORITHMS_H
#define ACCEL_PLAN_KERNELS_ALGORITHMS_H

#include "gen/program/program.h"

/* Fills program->library.gemms, where the device's library has several algorithms for a matmul. */
void choose_algorithms(struct program *program);

#endif
