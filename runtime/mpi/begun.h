/* Collectives that have begun and go on beside other work, in their order. */
#ifndef RUNTIME_MPI_BEGUN_H
#define RUNTIME_MPI_BEGUN_H

#include "runtime/trainer.h"

#include <mpi.h>

/* What becomes of one when it ends. */
struct begun {
  void (*end)(const struct begun *item); /* NULL: nothing */
  float *values;
  const void *arrived;
  enum accel_dtype dtype;
  size_t count;
  int *counts; /* which MPI reads until it ends; freed then; NULL: none */
};

struct begun_list {
  const char *what; /* for messages */
  MPI_Request *requests;
  struct begun *items;
  int count, ended, capacity;
};

/* The list grows in a run's first step alone. */
void rt_begun_add(struct begun_list *list, MPI_Request request, struct begun item);

/* Lets them go on. */
void rt_begun_advance(struct begun_list *list);

/* Waits until the first `count` of them have ended; all: the list is empty then. */
void rt_begun_wait(struct begun_list *list, int count);
void rt_begun_wait_all(struct begun_list *list);

/* Sums over ranks, and what comes together from them. */
extern struct begun_list rt_sums, rt_gathers;

#endif
