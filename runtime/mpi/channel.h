/* Channels: MPI's communicators of a run. */
#ifndef RUNTIME_MPI_CHANNEL_H
#define RUNTIME_MPI_CHANNEL_H

#include "include/accel/trainer.h"
#include "runtime/mpi/waiting.h"

#include <mpi.h>

/* Makes the channels for messages between steps, by the run and by user code; those of the mesh once the program's
 * is known. */
void rt_channels_open(void);
void rt_channels_divide(const struct accel_program *program);
void rt_channels_close(void);

MPI_Comm rt_channel_between(void);
MPI_Comm rt_channel_here(void); /* the ranks of this machine */
MPI_Comm rt_channel_user(void);
MPI_Comm rt_channel_along(enum accel_axis axis);

/* The same ranks, for what begins when something else has ended, which is at another time on each rank. */
MPI_Comm rt_channel_chained(enum accel_axis axis);

/* By rank, elements of shards, and after these where each begins: `shard_size` for all but the last one. In `counts`,
 * which this function gave before, for whichever axis; NULL: new ones, the caller's to free. */
int *rt_shard_counts(int *counts, int ranks, size_t shard_size, size_t last);

#endif
