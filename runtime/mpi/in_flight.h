/* Collectives in flight: started and not waited for yet, in the order of their start. */
#ifndef RUNTIME_MPI_IN_FLIGHT_H
#define RUNTIME_MPI_IN_FLIGHT_H

#include "include/accel/trainer.h"
#include "runtime/mpi/shared.h"

#include <mpi.h>

/* What carries one, what becomes of it when it ends, and what begins then. */
struct in_flight {
  struct shared *shared;                     /* NULL: MPI */
  uint64_t number;                           /* of what is shared */
  void (*end)(const struct in_flight *item); /* NULL: nothing */
  float *values;
  const void *arrived;
  enum accel_dtype dtype;
  size_t count;
  void (*next)(const struct in_flight *item); /* NULL: nothing; begins the sums of a chain, which are of: */
  float *chain_values;
  size_t chain_count;
  enum accel_axis chain[ACCEL_AXES]; /* along these axes, one after the other */
  int n_chain;
};

struct in_flight_list {
  const char *what; /* for messages */
  MPI_Request *requests;
  struct in_flight *items;
  int **
      counts; /* by position in the list: which MPI reads until that one ends, kept for the next step; NULL: none yet */
  int count, ended, capacity;
  bool ends; /* one is being ended */
};

/* The sizes and offsets of shards, as rt_shard_counts, for the one that is added next. The list keeps them. */
int *rt_in_flight_counts(struct in_flight_list *list, int ranks, size_t shard_size, size_t last);

/* The list grows in a run's first step alone. `request`: MPI_REQUEST_NULL for what is shared. */
void rt_in_flight_add(struct in_flight_list *list, MPI_Request request, struct in_flight item);

/* Lets them progress. They end in their order, so that what starts after them does so in one order on all ranks. */
void rt_in_flight_advance(struct in_flight_list *list);

/* Waits until the first `count` of them have ended; all, with those that began meanwhile: the list is empty then. */
void rt_in_flight_wait(struct in_flight_list *list, int count);
void rt_in_flight_wait_all(struct in_flight_list *list);

/* Sums over ranks, those that began when one of these had ended, and what comes together from ranks. */
extern struct in_flight_list rt_sums, rt_sums_chained, rt_gathers;

#endif
