/* Library: which kernels a device's library computes, and what follows from that. */
#ifndef ACCEL_PLAN_GRAPH_LIBRARY_H
#define ACCEL_PLAN_GRAPH_LIBRARY_H

#include "gen/program/program.h"

/* Whether the library of the program's device has a node as it stands, and the job leaves it to that. */
bool library_has(const struct program *program, const struct node *node);

/* The same of a kernel, which may add to what stands in its results. */
bool library_computes(const struct program *program, const struct kernel *kernel);

/* Removes the workspace outputs of nodes whose kernels need none on the program's device. */
void library_drop_workspaces(struct program *program);

#endif
