/* Kernels: what follows from a program's kernels. */
#ifndef ACCEL_PROGRAM_KERNELS_H
#define ACCEL_PROGRAM_KERNELS_H

#include "gen/program/program.h"

/* A kernel's position among the program's; -1: it is none of them, as a call's statement has none. */
int kernel_index(const struct program *program, const struct kernel *kernel);

/* What a kernel must move: each operand once, and what it adds to twice. */
double kernel_bytes(const struct kernel *kernel);

#endif
