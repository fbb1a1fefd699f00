/* The processors of a machine, shared out among the ranks on it. */
#ifndef RUNTIME_MPI_PROCESSORS_H
#define RUNTIME_MPI_PROCESSORS_H

#include "runtime/process/world.h"

/* As rt_world_take_processors. */
bool rt_processors_take(bool bind, struct processors *own, struct problem *problem);

#endif
