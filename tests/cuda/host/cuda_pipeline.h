/* Copies into shared memory that run concurrently with a thread: here they are done no sooner than the thread waits for
 * them, so that one which does not wait is found by its numbers. */
#ifndef HOST_CUDA_PIPELINE_H
#define HOST_CUDA_PIPELINE_H

#include <stdio.h>
#include <stdlib.h>

#include <accel/gpu/launch.h>

struct host_copy {
  void *to;
  const void *from;
  size_t bytes;
  int stage;
};
struct host_pipeline {
  struct host_copy copies[256];
  int count, stage;
};
static struct host_pipeline host_pipelines[1024];

static inline void __pipeline_memcpy_async(void *to, const void *from, size_t bytes) {
  struct host_pipeline *mine = &host_pipelines[threadIdx.x];
  const bool fits = bytes == 4 || bytes == 8 || bytes == 16;
  if (!fits || (uintptr_t)to % bytes != 0 || (uintptr_t)from % bytes != 0 || mine->count == 256) {
    fprintf(stderr, "no GPU copies %zu bytes from %p to %p concurrently with a thread, after %d\n", bytes, from, to,
            mine->count);
    exit(1);
  }
  mine->copies[mine->count++] = {to, from, bytes, mine->stage};
}

static inline void __pipeline_commit(void) {
  host_pipelines[threadIdx.x].stage++;
}

/* Waits for all but the `later` stages committed last. */
static inline void __pipeline_wait_prior(int later) {
  struct host_pipeline *mine = &host_pipelines[threadIdx.x];
  int left = 0;
  for (int i = 0; i < mine->count; i++) {
    const struct host_copy copy = mine->copies[i];
    if (copy.stage < mine->stage - later)
      memcpy(copy.to, copy.from, copy.bytes);
    else
      mine->copies[left++] = copy;
  }
  mine->count = left;
}

#endif
