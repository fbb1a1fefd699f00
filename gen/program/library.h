/* Library: which kernels of a program its device's library computes. */
#ifndef ACCEL_PROGRAM_LIBRARY_H
#define ACCEL_PROGRAM_LIBRARY_H

#include "gen/program/program.h"

/* Whether the library of the program's device has a node as it is, and the job leaves it to that. */
bool library_has(const struct program *program, const struct node *node);

/* The same of a kernel, which may add to its results. */
bool library_computes(const struct program *program, const struct kernel *kernel);

/* The algorithm that the library's heuristic puts first. */
extern const char library_variant[];

#endif
