/* Transfers by io_uring: what begins is handed to the system by the thread that begins it, and one thread sleeps until
 * something ends. */
#include "runtime/files/transfers_engine.h"

#if __has_include(<liburing.h>)

#include <errno.h>
#include <liburing.h>
#include <stdlib.h>
#include <string.h>

struct ring {
  struct io_uring uring; /* submissions are the mutex's, completions the thread's */
  pthread_t thread;
};

static bool submit(struct ring *ring) {
  const int count = io_uring_submit(&ring->uring);
  if (count < 0) errno = -count;
  return count >= 0;
}

static bool ring_start(struct transfers *transfers, struct transfer *transfer) {
  struct ring *ring = transfers->engine_data;
  struct io_uring_sqe *entry = io_uring_get_sqe(&ring->uring);
  const int file = rt_transfer_file(transfer);
  char *memory = transfer->memory + transfer->done;
  const unsigned bytes =
      (unsigned)(transfer->bytes - transfer->done > 1 << 30 ? 1 << 30 : transfer->bytes - transfer->done);
  if (entry == NULL) {
    errno = EBUSY;
    return false;
  }
  if (transfer->writes)
    io_uring_prep_write(entry, file, memory, bytes, transfer->first + transfer->done);
  else
    io_uring_prep_read(entry, file, memory, bytes, transfer->first + transfer->done);
  io_uring_sqe_set_data(entry, transfer);
  return submit(ring);
}

/* What ends without a transfer is the end of all. */
static void *take_completions(void *argument) {
  struct transfers *transfers = argument;
  struct ring *ring = transfers->engine_data;
  for (;;) {
    struct io_uring_cqe *entry;
    const int error = io_uring_wait_cqe(&ring->uring, &entry);
    if (error == -EINTR || error == -EAGAIN) continue;
    if (error != 0) return NULL;
    struct transfer *transfer = io_uring_cqe_get_data(entry);
    const int result = entry->res;
    io_uring_cqe_seen(&ring->uring, entry);
    if (transfer == NULL) return NULL;
    pthread_mutex_lock(&transfers->mutex);
    rt_transfer_advance(transfers, transfer, result);
    pthread_mutex_unlock(&transfers->mutex);
  }
}

static bool ring_open(struct transfers *transfers, struct problem *problem) {
  struct ring *ring = calloc(1, sizeof *ring);
  const int error = ring != NULL ? io_uring_queue_init(TRANSFERS, &ring->uring, 0) : -ENOMEM;
  if (error != 0) {
    free(ring);
    return rt_problem(problem, "no ring for transfers of files: %s", strerror(-error));
  }
  transfers->engine_data = ring;
  if (rt_transfer_thread(&ring->thread, take_completions, transfers, problem)) return true;
  io_uring_queue_exit(&ring->uring);
  free(ring);
  return false;
}

static void ring_close(struct transfers *transfers) {
  struct ring *ring = transfers->engine_data;
  pthread_mutex_lock(&transfers->mutex);
  struct io_uring_sqe *entry = io_uring_get_sqe(&ring->uring);
  io_uring_prep_nop(entry);
  io_uring_sqe_set_data(entry, NULL);
  submit(ring);
  pthread_mutex_unlock(&transfers->mutex);
  pthread_join(ring->thread, NULL);
  io_uring_queue_exit(&ring->uring);
  free(ring);
}

#else

static bool ring_open(struct transfers *transfers, struct problem *problem) {
  (void)transfers;
  return rt_problem(problem, "no ring for transfers of files: the runtime was compiled without liburing");
}

static bool ring_start(struct transfers *transfers, struct transfer *transfer) {
  (void)transfers;
  (void)transfer;
  return false;
}

static void ring_close(struct transfers *transfers) {
  (void)transfers;
}

#endif

const struct transfer_engine rt_transfer_ring = {ring_open, ring_start, ring_close};
