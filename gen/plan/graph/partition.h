/* Partition: ranks divide tensors. Values get placements along an axis of the mesh, shapes become those of a rank's
 * part, and a collective converts one placement to another (DESIGN: the mesh). What comes after works on the program of
 * one rank. */
#ifndef ACCEL_PLAN_GRAPH_PARTITION_H
#define ACCEL_PLAN_GRAPH_PARTITION_H

#include "gen/program/program.h"

/* Divides the graph among the ranks along parallelism.tp: columns of a matrix and rows of the next one, heads of
 * attention (Shoeybi et al., arXiv:1909.08053). Nothing where that is 1. Before gradients are made, which then have
 * their collectives from the operations' own rules. Along parallelism.ep, gives each rank some of the experts
 * (gen/plan/graph/expert_parallel.h). False with an error at the key where the model has nothing that so many ranks can
 * divide. */
bool partition(struct program *program, struct builder *builder, struct diagnostics *diags);

#endif
