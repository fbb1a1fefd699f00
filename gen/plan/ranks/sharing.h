/* Sharing: memory through which ranks of one machine exchange, outside of the arena (runtime/mpi/shared.c). */
#ifndef ACCEL_PLAN_RANKS_SHARING_H
#define ACCEL_PLAN_RANKS_SHARING_H

#include "gen/program/program.h"

/* Bytes that a rank adds to its machine's memory, and of what all ranks add, those that it touches: these are what its
 * resident size counts. 0 where nothing is exchanged within a machine. Of the rank of that index along the axis of
 * layers; of 0, without stages. */
struct shared_bytes {
  int64_t own, touched;
};
struct shared_bytes shared_bytes(const struct program *program, int rank);

/* Those of the rank that has most. */
struct shared_bytes most_shared_bytes(const struct program *program);

/* The plan's line about them, and about what a process takes in addition; "" with one rank. */
const char *sharing_text(const struct program *program);

#endif
