/* Kernels: which C functions the steps need; equal ones are one. */
#ifndef ACCEL_PLAN_KERNELS_H
#define ACCEL_PLAN_KERNELS_H

#include "gen/plan/program.h"

/* Fills program->kernels and each step's kernel. */
void choose_kernels(struct program *program);

/* The way of a product that a device's library computes by the algorithm that it chooses itself. */
extern const char library_way[];

/* What its choice of ways is for, in full: the kernel's subject, and what of the job a library asks beside it. */
const char *choice_subject(const struct program *program, const struct kernel *kernel);

/* A kernel's place among the program's; -1: it is none of them, as a call's statement has none. */
int kernel_index(const struct program *program, const struct kernel *kernel);

/* The operand's name in a node: by the operation, numbered where it has no name for it. */
const char *operand_name(struct arena *arena, const struct node *node, bool output, int index);

#endif
