/* Transfers by threads, each of which has one at a time: as many as read and write at once. */
#include "runtime/files/transfers_engine.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

enum { THREADS = 4 };

struct crew {
  pthread_t threads[THREADS];
  int count;
  pthread_cond_t work;
  struct transfer *queue[TRANSFERS]; /* that run and that no thread has yet */
  int waiting;
  bool ends;
};

static bool crew_start(struct transfers *transfers, struct transfer *transfer) {
  struct crew *crew = transfers->engine_data;
  crew->queue[crew->waiting++] = transfer;
  pthread_cond_signal(&crew->work);
  return true;
}

static struct transfer *take(struct crew *crew) {
  struct transfer *first = crew->queue[0];
  crew->waiting--;
  for (int i = 0; i < crew->waiting; i++) crew->queue[i] = crew->queue[i + 1];
  return first;
}

/* Without the mutex: what runs is nobody else's. */
static ssize_t move_bytes(const struct transfer *transfer) {
  const int file = rt_transfer_file(transfer);
  char *memory = transfer->memory + transfer->done;
  const size_t bytes = transfer->bytes - transfer->done;
  const off_t at = (off_t)(transfer->first + transfer->done);
  const ssize_t count = transfer->writes ? pwrite(file, memory, bytes, at) : pread(file, memory, bytes, at);
  return count < 0 ? -errno : count;
}

static void *work(void *argument) {
  struct transfers *transfers = argument;
  struct crew *crew = transfers->engine_data;
  pthread_mutex_lock(&transfers->mutex);
  while (!crew->ends) {
    if (crew->waiting == 0) {
      pthread_cond_wait(&crew->work, &transfers->mutex);
      continue;
    }
    struct transfer *transfer = take(crew);
    pthread_mutex_unlock(&transfers->mutex);
    const ssize_t count = move_bytes(transfer);
    pthread_mutex_lock(&transfers->mutex);
    rt_transfer_advance(transfers, transfer, count);
  }
  pthread_mutex_unlock(&transfers->mutex);
  return NULL;
}

static void crew_close(struct transfers *transfers) {
  struct crew *crew = transfers->engine_data;
  pthread_mutex_lock(&transfers->mutex);
  crew->ends = true;
  pthread_cond_broadcast(&crew->work);
  pthread_mutex_unlock(&transfers->mutex);
  for (int i = 0; i < crew->count; i++) pthread_join(crew->threads[i], NULL);
  pthread_cond_destroy(&crew->work);
  free(crew);
}

/* With fewer threads than are wanted it works as well. */
static bool crew_open(struct transfers *transfers, struct problem *problem) {
  struct crew *crew = calloc(1, sizeof *crew);
  if (crew == NULL) return rt_problem(problem, "no memory for threads");
  pthread_cond_init(&crew->work, NULL);
  transfers->engine_data = crew;
  while (crew->count < THREADS && rt_transfer_thread(&crew->threads[crew->count], work, transfers, problem))
    crew->count++;
  if (crew->count > 0) return true;
  pthread_cond_destroy(&crew->work);
  free(crew);
  return false;
}

const struct transfer_engine rt_transfer_threads = {crew_open, crew_start, crew_close};
