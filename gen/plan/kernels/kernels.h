/* Kernels: which C functions the steps need; equal ones are one. */
#ifndef ACCEL_PLAN_KERNELS_KERNELS_H
#define ACCEL_PLAN_KERNELS_KERNELS_H

#include "gen/program/program.h"

/* Fills program->kernels and each step's kernel. */
void choose_kernels(struct program *program);

/* Takes out of program->kernels what no statement calls that a stage of a pipeline has. */
void drop_unused_kernels(struct program *program);

/* The operand's name in a node: by the operation, numbered where it has no name for it. */
const char *operand_name(struct arena *arena, const struct node *node, bool output, int index);

#endif
