/* A thread that reads the files of the samples that come next, so that steps find them in memory. It reads and throws
 * away: what a step gets does not depend on it. */
#ifndef RUNTIME_DATA_PREFETCH_H
#define RUNTIME_DATA_PREFETCH_H

#include "runtime/data/data.h"

#include <pthread.h>
#include <stdatomic.h>

struct prefetch {
  const struct data *data;
  int64_t ahead; /* positions that it is ahead at most */
  pthread_t thread;
  bool runs;
  atomic_bool ends;
  atomic_llong at; /* the newest position that a step asked for; -1: none yet */
};

/* Starts the thread, for training from mapped files. False with a problem. */
bool rt_prefetch_start(struct prefetch *prefetch, const struct data *data, int64_t ahead, struct problem *problem);

/* The position that steps have reached. No system call. */
void rt_prefetch_advance(struct prefetch *prefetch, int64_t position);

void rt_prefetch_end(struct prefetch *prefetch);

#endif
