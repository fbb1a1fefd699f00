/* The mesh of a program: which axis divides what, and the placements along it. Data parallelism, ZeRO (Rajbhandari et
 * al., arXiv:1910.02054) and FSDP differ in placements alone. */
#ifndef ACCEL_PLAN_GRAPH_MESH_H
#define ACCEL_PLAN_GRAPH_MESH_H

#include "gen/program/program.h"

/* Fills program->mesh from the job's axes. Before all passes. */
void lay_mesh(struct program *program);

#endif
