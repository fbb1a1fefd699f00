/* The connections of a run: rank 0 has one of each channel to each other rank, every other rank to
 * rank 0. */
#ifndef RUNTIME_TCP_PEERS_H
#define RUNTIME_TCP_PEERS_H

#include "runtime/process/world.h"
#include "runtime/tcp/frame.h"

struct peers {
  int (*sockets)[CHANNELS]; /* by rank; of a rank but 0 only that of rank 0 */
  int ranks;
};

/* What the environment says of this process: RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE as torchrun sets them, else
 * what Open MPI, MPICH or Slurm set. Alone where nothing does. local_ranks is -1 where it is not known. */
bool rt_peers_identity(struct world *world, struct problem *problem);

/* Meets the others at MASTER_ADDR (127.0.0.1), MASTER_PORT (29500) within ACCEL_START_TIMEOUT (300) seconds, and finds
 * the number on the machine where it is not known. */
bool rt_peers_meet(struct peers *peers, struct world *world, struct problem *problem);

void rt_peers_close(struct peers *peers);

#endif
