/* Weights that are on the host or in a file, on their way to the device in a stream of their own. */
#include "runtime/gpu/state.h"
#include "runtime/process/fail.h"
#include "runtime/weights/streamed.h"

#include <stdatomic.h>
#include <stdlib.h>

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
  if (stride > 0)
    RT_CUDA(cudaHostAlloc((void **)&device->prefetches.staging, RT_PIECES * stride, cudaHostAllocDefault));
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

accel_stream rt_cuda_prefetch_begin(struct cuda_device *device) {
  accel_stream stream = device->streams[ACCEL_PREFETCH];
  RT_CUDA(cudaEventRecord(device->prefetches.forked, device->streams[ACCEL_COMPUTE]));
  RT_CUDA(cudaStreamWaitEvent(stream, device->prefetches.forked, 0));
  return stream;
}

void rt_cuda_prefetch_copy(struct cuda_device *device, void *to, const void *from, size_t bytes) {
  accel_stream stream = device->streams[ACCEL_PREFETCH];
  RT_CUDA(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, stream));
  RT_CUDA(cudaEventRecord(device->prefetches.fetched, stream));
  device->prefetches.fetches = true;
}

void accel_gpu_prefetch(void *to, const void *from, size_t bytes) {
  struct cuda_device *device = rt_cuda_device();
  if (bytes == 0) return;
  rt_cuda_prefetch_begin(device);
  rt_cuda_prefetch_copy(device, to, from, bytes);
}

/* ---- Waiting ---- */

void rt_cuda_note_failed_read(void) {
  atomic_store(&failed, true);
}

void rt_cuda_require_reads(void) {
  struct problem problem;
  if (atomic_load(&failed) && !rt_cuda_device()->program->reader->wait(&problem)) rt_fail(&problem, 1);
}

void rt_cuda_after_prefetch(accel_stream stream) {
  struct prefetches *prefetches = &rt_cuda_device()->prefetches;
  if (prefetches->fetches) RT_CUDA(cudaStreamWaitEvent(stream, prefetches->fetched, 0));
  prefetches->fetches = false;
}

void accel_gpu_wait_prefetch(void) {
  rt_cuda_after_prefetch(accel_gpu_stream(ACCEL_COMPUTE));
}
