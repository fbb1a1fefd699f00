/* Library: which kernels a device's library computes, and what follows from that. */
#ifndef ACCEL_PLAN_GRAPH_LIBRARY_H
#define ACCEL_PLAN_GRAPH_LIBRARY_H

#include "gen/program/program.h"

/* Removes the workspace outputs of nodes whose kernels need none on the program's device. */
void library_drop_workspaces(struct program *program);

#endif
