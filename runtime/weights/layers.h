/* A program's tables have the rows of one layer for all layers that are alike; the runtime uses tables with all. */
#ifndef RUNTIME_WEIGHTS_LAYERS_H
#define RUNTIME_WEIGHTS_LAYERS_H

#include "include/accel/trainer.h"
#include "runtime/base/problem.h"

/* The program with each layer's rows in its tables; itself where no rows stand for several layers. The tables belong to
 * the process, which has one program. NULL and a problem: there is no memory for them. */
const struct accel_program *rt_layers_expand(const struct accel_program *program, struct problem *problem);

#endif
