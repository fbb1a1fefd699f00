#include "runtime/files/transfers_engine.h"

#include "runtime/process/thread.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Memory, offset and size of a direct transfer are multiples of this; bytes of a thread's stack. */
enum { DIRECT_UNIT = 4096, STACK = 1 << 18 };

/* ---- What begins when ---- */

static bool overlap(uintptr_t a, size_t a_bytes, uintptr_t b, size_t b_bytes) {
  return a < b + b_bytes && b < a + a_bytes;
}

static bool uses_memory(const struct transfer *transfer, const void *memory, size_t bytes) {
  return transfer->state != TRANSFER_FREE &&
         (memory == NULL || overlap((uintptr_t)transfer->memory, transfer->bytes, (uintptr_t)memory, bytes));
}

static bool must_wait(const struct transfers *transfers, const struct transfer *transfer) {
  for (int i = 0; i < TRANSFERS; i++) {
    const struct transfer *other = &transfers->items[i];
    if (other->number < transfer->number && uses_memory(other, transfer->memory, transfer->bytes)) return true;
    if (other->number < transfer->number && other->state != TRANSFER_FREE && other->file == transfer->file &&
        (other->writes || transfer->writes) && overlap(other->first, other->bytes, transfer->first, transfer->bytes))
      return true;
  }
  return false;
}

static void give_up(struct transfers *transfers, struct transfer *transfer, int error) {
  transfer->state = TRANSFER_FREE;
  if (transfers->failed) return;
  transfers->failed = true;
  rt_problem(&transfers->problem, "%s: %zu bytes could not be %s: %s", transfer->file->path, transfer->bytes,
             transfer->writes ? "written" : "read", strerror(error));
  rt_help(&transfers->problem, "%s", transfer->file->cure);
}

static void start(struct transfers *transfers, struct transfer *transfer) {
  transfer->state = TRANSFER_RUNS;
  if (!transfers->engine->start(transfers, transfer)) give_up(transfers, transfer, errno);
}

/* After a failure what waits does not begin. */
static void start_ready(struct transfers *transfers) {
  for (int i = 0; i < TRANSFERS; i++) {
    struct transfer *transfer = &transfers->items[i];
    if (transfer->state != TRANSFER_WAITS) continue;
    if (transfers->failed)
      transfer->state = TRANSFER_FREE;
    else if (!must_wait(transfers, transfer))
      start(transfers, transfer);
  }
}

void rt_transfer_advance(struct transfers *transfers, struct transfer *transfer, ssize_t count) {
  if (count > 0) transfer->done += (size_t)count;
  const bool refused = count == -EINVAL && transfer->file->direct >= 0; /* the file system wants larger units */
  if (refused) transfer->file->direct = -1;
  if (refused || count == -EINTR || count == -EAGAIN || (count > 0 && transfer->done < transfer->bytes)) {
    start(transfers, transfer);
  } else if (count <= 0) {
    give_up(transfers, transfer, count < 0 ? (int)-count : ENODATA);
  } else {
    transfer->state = TRANSFER_FREE;
  }
  start_ready(transfers);
  pthread_cond_broadcast(&transfers->changed);
}

int rt_transfer_file(const struct transfer *transfer) {
  const uintptr_t unit = ((uintptr_t)transfer->memory + transfer->done) | (transfer->first + transfer->done) |
                         (transfer->bytes - transfer->done);
  return transfer->file->direct >= 0 && unit % DIRECT_UNIT == 0 ? transfer->file->direct : transfer->file->file;
}

/* ---- Calls ---- */

static struct transfer *find_free(struct transfers *transfers) {
  for (int i = 0; i < TRANSFERS; i++)
    if (transfers->items[i].state == TRANSFER_FREE) return &transfers->items[i];
  return NULL;
}

static void begin(struct transfers *transfers, struct transfer transfer) {
  struct transfer *item;
  if (transfer.bytes == 0) return;
  pthread_mutex_lock(&transfers->mutex);
  while ((item = find_free(transfers)) == NULL) pthread_cond_wait(&transfers->changed, &transfers->mutex);
  transfer.state = TRANSFER_WAITS;
  transfer.number = transfers->calls++;
  *item = transfer;
  start_ready(transfers);
  pthread_mutex_unlock(&transfers->mutex);
}

void rt_transfers_read(struct transfers *transfers, struct transfer_file *file, size_t first, void *memory,
                       size_t bytes) {
  begin(transfers, (struct transfer){.file = file, .memory = memory, .first = first, .bytes = bytes});
}

void rt_transfers_write(struct transfers *transfers, struct transfer_file *file, size_t first, const void *memory,
                        size_t bytes) {
  char *from = (char *)(uintptr_t)memory;
  begin(transfers, (struct transfer){.file = file, .writes = true, .memory = from, .first = first, .bytes = bytes});
}

static bool is_used(const struct transfers *transfers, const void *memory, size_t bytes) {
  for (int i = 0; i < TRANSFERS; i++)
    if (uses_memory(&transfers->items[i], memory, bytes)) return true;
  return false;
}

bool rt_transfers_wait(struct transfers *transfers, const void *memory, size_t bytes, struct problem *problem) {
  pthread_mutex_lock(&transfers->mutex);
  while (is_used(transfers, memory, bytes)) pthread_cond_wait(&transfers->changed, &transfers->mutex);
  const bool good = !transfers->failed;
  if (!good) *problem = transfers->problem;
  pthread_mutex_unlock(&transfers->mutex);
  return good;
}

/* ---- The beginning and the end ---- */

bool rt_transfer_thread(pthread_t *thread, void *(*work)(void *transfers), struct transfers *transfers,
                        struct problem *problem) {
  const int error = rt_thread_start(thread, STACK, work, transfers);
  return error == 0 || rt_problem(problem, "no thread for transfers of files: %s", strerror(error));
}

static bool open_engine(struct transfers *transfers, enum transfer_way way, struct problem *problem) {
  transfers->engine = &rt_transfer_ring;
  if (way != TRANSFERS_BY_THREADS && transfers->engine->open(transfers, problem)) return true;
  transfers->engine = &rt_transfer_threads;
  return way != TRANSFERS_BY_URING && transfers->engine->open(transfers, problem);
}

struct transfers *rt_transfers_open(enum transfer_way way, struct problem *problem) {
  struct transfers *transfers = calloc(1, sizeof *transfers);
  if (transfers == NULL) {
    rt_problem(problem, "no memory for the list of transfers");
    return NULL;
  }
  pthread_mutex_init(&transfers->mutex, NULL);
  pthread_cond_init(&transfers->changed, NULL);
  if (open_engine(transfers, way, problem)) return transfers;
  free(transfers);
  return NULL;
}

void rt_transfers_close(struct transfers *transfers) {
  struct problem ignored;
  if (transfers == NULL) return;
  rt_transfers_wait(transfers, NULL, 0, &ignored);
  transfers->engine->close(transfers);
  pthread_cond_destroy(&transfers->changed);
  pthread_mutex_destroy(&transfers->mutex);
  free(transfers);
}
