/* Weights that are on the host or in a file, on their way to the device in a stream of their own. */
#include "runtime/gpu/state.h"
#include "runtime/process/fail.h"
#include "runtime/weights/streamed.h"

#include <stdatomic.h>
#include <stdlib.h>

enum { PIECES = 2 };

/* A layer that a stream has read: as graphs have its address, it stays. */
struct layer_read {
  size_t first, bytes;
  char *values;
  struct layer_read *next;
};

static atomic_bool failed;

static cudaEvent_t event(void) {
  cudaEvent_t made;
  RT_CUDA(cudaEventCreateWithFlags(&made, cudaEventDisableTiming));
  return made;
}

void rt_cuda_prefetch_open(struct cuda_device *device) {
  const size_t stride = rt_cuda_stride(device->plan.staging_bytes);
  device->prefetches =
      (struct prefetches){.forked = event(), .begun = event(), .read = event(), .fetched = event(), .stride = stride};
  if (stride > 0) RT_CUDA(cudaHostAlloc((void **)&device->prefetches.staging, PIECES * stride, cudaHostAllocDefault));
}

void rt_cuda_prefetch_close(struct cuda_device *device) {
  struct prefetches *prefetches = &device->prefetches;
  RT_CUDA(cudaEventDestroy(prefetches->forked));
  RT_CUDA(cudaEventDestroy(prefetches->begun));
  RT_CUDA(cudaEventDestroy(prefetches->read));
  RT_CUDA(cudaEventDestroy(prefetches->fetched));
  if (prefetches->staging != NULL) RT_CUDA(cudaFreeHost(prefetches->staging));
  while (prefetches->layers != NULL) {
    struct layer_read *layer = prefetches->layers;
    prefetches->layers = layer->next;
    free(layer);
  }
}

void rt_cuda_prefetch_record(struct cuda_device *device) {
  device->prefetches.reads = 0;
}

/* The prefetch stream, once it waits for what the compute stream holds by now. */
static accel_stream begin(struct cuda_device *device) {
  accel_stream stream = device->streams[ACCEL_PREFETCH];
  RT_CUDA(cudaEventRecord(device->prefetches.forked, device->streams[ACCEL_COMPUTE]));
  RT_CUDA(cudaStreamWaitEvent(stream, device->prefetches.forked, 0));
  return stream;
}

static void copy(struct cuda_device *device, void *to, const void *from, size_t bytes) {
  accel_stream stream = device->streams[ACCEL_PREFETCH];
  RT_CUDA(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, stream));
  RT_CUDA(cudaEventRecord(device->prefetches.fetched, stream));
  device->prefetches.fetches = true;
}

void accel_gpu_prefetch(void *to, const void *from, size_t bytes) {
  struct cuda_device *device = rt_cuda_device();
  if (bytes == 0) return;
  begin(device);
  copy(device, to, from, bytes);
}

/* ---- From files ---- */

static struct layer_read *layer_of(struct prefetches *prefetches, size_t first, size_t bytes, char *values) {
  for (struct layer_read *at = prefetches->layers; at != NULL; at = at->next)
    if (at->first == first && at->values == values) return at;
  struct layer_read *made = malloc(sizeof *made);
  if (made == NULL) {
    struct problem problem;
    rt_problem(&problem, "no memory for the list of layers");
    rt_fail(&problem, 1);
  }
  *made = (struct layer_read){first, bytes, values, prefetches->layers};
  prefetches->layers = made;
  return made;
}

/* In a thread of CUDA's, which may not end the process: whoever waits for the device does (rt_cuda_require_reads). */
static void read_layer(void *data) {
  const struct layer_read *layer = data;
  const struct accel_layer_reader *reader = rt_cuda_device()->program->reader;
  struct problem problem;
  reader->start(layer->first, layer->values, layer->bytes);
  if (!reader->wait(&problem)) atomic_store(&failed, true);
}

void rt_cuda_require_reads(void) {
  struct problem problem;
  if (atomic_load(&failed) && !rt_cuda_device()->program->reader->wait(&problem)) rt_fail(&problem, 1);
}

/* A piece of pinned memory is read into once the copy before the last one has left it, which is before the turn of the
 * last one began. So a layer is read while the one before is copied, and the one before that computes. */
void accel_gpu_prefetch_read(void *to, size_t first, size_t bytes) {
  struct cuda_device *device = rt_cuda_device();
  struct prefetches *prefetches = &device->prefetches;
  accel_stream reading = device->streams[ACCEL_READ];
  if (bytes == 0) return;
  char *values = prefetches->staging + (size_t)(prefetches->reads % PIECES) * prefetches->stride;
  accel_stream copying = begin(device);
  RT_CUDA(cudaStreamWaitEvent(reading, prefetches->reads == 0 ? prefetches->forked : prefetches->begun, 0));
  RT_CUDA(cudaLaunchHostFunc(reading, read_layer, layer_of(prefetches, first, bytes, values)));
  RT_CUDA(cudaEventRecord(prefetches->read, reading));
  RT_CUDA(cudaEventRecord(prefetches->begun, copying));
  RT_CUDA(cudaStreamWaitEvent(copying, prefetches->read, 0));
  copy(device, to, values, bytes);
  prefetches->reads++;
}

/* ---- Waiting ---- */

void rt_cuda_after_prefetch(accel_stream stream) {
  struct prefetches *prefetches = &rt_cuda_device()->prefetches;
  if (prefetches->fetches) RT_CUDA(cudaStreamWaitEvent(stream, prefetches->fetched, 0));
  prefetches->fetches = false;
}

void accel_gpu_wait_prefetch(void) {
  rt_cuda_after_prefetch(accel_gpu_stream(ACCEL_COMPUTE));
}
