/* What carries transfers out: a ring or threads. transfers.c decides when each one begins. */
#ifndef RUNTIME_FILES_TRANSFERS_ENGINE_H
#define RUNTIME_FILES_TRANSFERS_ENGINE_H

#include "runtime/files/transfers.h"

#include <pthread.h>
#include <stdint.h>
#include <sys/types.h>

/* Transfers that are begun, or wait for others. */
enum { TRANSFERS = 256 };

enum transfer_state { TRANSFER_FREE, TRANSFER_WAITS, TRANSFER_RUNS };

struct transfer {
  enum transfer_state state;
  struct transfer_file *file;
  bool writes;
  uint64_t number; /* in the order of their calls */
  char *memory;
  size_t first, bytes, done;
};

struct transfers {
  const struct transfer_engine *engine;
  void *engine_data;
  pthread_mutex_t mutex; /* of all that follows */
  pthread_cond_t changed;
  struct transfer items[TRANSFERS];
  uint64_t calls;
  bool failed;
  struct problem problem;
};

struct transfer_engine {
  /* Sets engine_data. False with a problem. */
  bool (*open)(struct transfers *transfers, struct problem *problem);
  /* Begins with what a transfer that runs has not done yet. The mutex is held. False: nothing was begun, with errno. */
  bool (*start)(struct transfers *transfers, struct transfer *transfer);
  /* No transfer runs any more. */
  void (*close)(struct transfers *transfers);
};

extern const struct transfer_engine rt_transfer_ring, rt_transfer_threads;

/* The file by which the rest of a transfer goes. */
int rt_transfer_file(const struct transfer *transfer);

/* An engine reports that `count` bytes of a transfer are done, or -errno. The mutex is held. */
void rt_transfer_advance(struct transfers *transfers, struct transfer *transfer, ssize_t count);

/* A thread of the engine's own, which no signal reaches. False with a problem. */
bool rt_transfer_thread(pthread_t *thread, void *(*work)(void *transfers), struct transfers *transfers,
                        struct problem *problem);

#endif
