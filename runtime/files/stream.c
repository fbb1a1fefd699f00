#define _GNU_SOURCE /* O_DIRECT */
#include "runtime/files/stream.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

enum { BLOCK = 2 << 20, ALIGNMENT = 4096 }; /* a multiple of any disk's sectors */

struct stream {
  int file;
  bool direct;
  char *blocks[2];
  int filling;   /* the one that is not being written */
  size_t filled; /* bytes in it */
  bool runs;     /* the thread, once there is a whole block */
  pthread_t thread;
  pthread_mutex_t mutex; /* of what follows */
  pthread_cond_t changed;
  const char *full; /* a block on its way; NULL: none */
  bool ends;
  int error; /* the first one */
};

/* What libraries have allocated and freed again, such as oneDNN's packed operands of a step, goes back to the system,
 * so that a save does not add to it. */
static void give_back(void) {
#ifdef __GLIBC__
  malloc_trim(0);
#endif
}

struct stream *rt_stream_open(int file) {
  struct stream *stream = calloc(1, sizeof *stream);
  if (stream == NULL) return NULL;
  stream->file = file;
  give_back();
  /* Touched at once, so that what a process takes in addition to its arena is the same whatever it writes. */
  for (int i = 0; i < 2; i++) {
    stream->blocks[i] = aligned_alloc(ALIGNMENT, BLOCK);
    if (stream->blocks[i] != NULL) memset(stream->blocks[i], 0, BLOCK);
  }
  pthread_mutex_init(&stream->mutex, NULL);
  pthread_cond_init(&stream->changed, NULL);
  if (stream->blocks[0] != NULL && stream->blocks[1] != NULL) return stream;
  rt_stream_end(stream);
  return NULL;
}

/* Where the file system has no such way, it says so here or at the first write. */
static void set_direct(struct stream *stream, bool direct) {
#ifdef O_DIRECT
  int flags = fcntl(stream->file, F_GETFL);
  if (flags >= 0) flags = fcntl(stream->file, F_SETFL, direct ? flags | O_DIRECT : flags & ~O_DIRECT);
  stream->direct = direct && flags >= 0;
#else
  stream->direct = false;
#endif
}

/* 0, or the error. */
static int write_all(struct stream *stream, const char *bytes, size_t size) {
  while (size > 0) {
    ssize_t written = write(stream->file, bytes, size);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0 && errno == EINVAL && stream->direct) {
      set_direct(stream, false);
      continue;
    }
    if (written < 0) return errno;
    bytes += written;
    size -= (size_t)written;
  }
  return 0;
}

static void *run(void *argument) {
  struct stream *stream = argument;
  pthread_mutex_lock(&stream->mutex);
  for (;;) {
    while (stream->full == NULL && !stream->ends) pthread_cond_wait(&stream->changed, &stream->mutex);
    if (stream->full == NULL) break;
    pthread_mutex_unlock(&stream->mutex);
    int error = write_all(stream, stream->full, BLOCK);
    pthread_mutex_lock(&stream->mutex);
    if (stream->error == 0) stream->error = error;
    stream->full = NULL;
    pthread_cond_broadcast(&stream->changed);
  }
  pthread_mutex_unlock(&stream->mutex);
  return NULL;
}

/* Gives the thread the block that is full, once it has written the one before. Without a thread, writes it. */
static bool hand_over(struct stream *stream) {
  if (!stream->runs) {
    set_direct(stream, true);
    stream->runs = pthread_create(&stream->thread, NULL, run, stream) == 0;
  }
  stream->filled = 0;
  if (!stream->runs) {
    stream->error = write_all(stream, stream->blocks[stream->filling], BLOCK);
    return stream->error == 0;
  }
  pthread_mutex_lock(&stream->mutex);
  while (stream->full != NULL) pthread_cond_wait(&stream->changed, &stream->mutex);
  if (stream->error == 0) stream->full = stream->blocks[stream->filling];
  bool good = stream->error == 0;
  pthread_cond_broadcast(&stream->changed);
  pthread_mutex_unlock(&stream->mutex);
  stream->filling = !stream->filling;
  return good;
}

bool rt_stream_add(struct stream *stream, const void *bytes, size_t size) {
  for (const char *at = bytes; size > 0;) {
    size_t space = BLOCK - stream->filled, part = size < space ? size : space;
    memcpy(stream->blocks[stream->filling] + stream->filled, at, part);
    stream->filled += part;
    at += part;
    size -= part;
    if (stream->filled == BLOCK && !hand_over(stream)) {
      errno = stream->error;
      return false;
    }
  }
  return true;
}

static void end_thread(struct stream *stream) {
  if (!stream->runs) return;
  pthread_mutex_lock(&stream->mutex);
  stream->ends = true;
  pthread_cond_broadcast(&stream->changed);
  pthread_mutex_unlock(&stream->mutex);
  pthread_join(stream->thread, NULL);
}

bool rt_stream_end(struct stream *stream) {
  end_thread(stream);
  if (stream->direct) set_direct(stream, false); /* the rest is no whole block */
  int error = stream->error;
  if (error == 0 && stream->filled > 0) error = write_all(stream, stream->blocks[stream->filling], stream->filled);
  pthread_mutex_destroy(&stream->mutex);
  pthread_cond_destroy(&stream->changed);
  for (int i = 0; i < 2; i++) free(stream->blocks[i]);
  free(stream);
  errno = error;
  return error == 0;
}
