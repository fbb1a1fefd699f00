/* What goes between host and device in every step: rings of pinned memory, so that neither waits for the other. */
#include "runtime/gpu/state.h"
#include "runtime/process/fail.h"

#include <stdlib.h>

size_t rt_cuda_stride(size_t bytes) {
  return (bytes + 255) / 256 * 256;
}

static void open_ring(struct ring *ring, size_t bytes, int ahead, char *staging) {
  *ring = (struct ring){.device = staging, .stride = rt_cuda_stride(bytes)};
  if (bytes == 0) return;
  RT_CUDA(cudaHostAlloc((void **)&ring->host, ring->stride * (size_t)ahead, cudaHostAllocDefault));
  ring->copied = calloc(2 * (size_t)ahead, sizeof *ring->copied);
  ring->targets = calloc((size_t)ahead, sizeof *ring->targets);
  if (ring->copied == NULL || ring->targets == NULL) {
    struct problem problem;
    rt_problem(&problem, "no memory for %d events", 2 * ahead);
    rt_fail(&problem, 1);
  }
  ring->taken = ring->copied + ahead;
  for (int i = 0; i < 2 * ahead; i++) RT_CUDA(cudaEventCreateWithFlags(&ring->copied[i], cudaEventDisableTiming));
}

static void close_ring(struct ring *ring, int ahead) {
  if (ring->host == NULL) return;
  for (int i = 0; i < 2 * ahead; i++) RT_CUDA(cudaEventDestroy(ring->copied[i]));
  free(ring->copied);
  free(ring->targets);
  RT_CUDA(cudaFreeHost(ring->host));
  *ring = (struct ring){0};
}

void rt_cuda_rings_open(struct cuda_device *device, char *staging) {
  open_ring(&device->feed, device->plan.feed_bytes, device->plan.ahead, staging);
  open_ring(&device->report, device->plan.report_bytes, device->plan.ahead, NULL);
}

void rt_cuda_rings_close(struct cuda_device *device) {
  close_ring(&device->feed, device->plan.ahead);
  close_ring(&device->report, device->plan.ahead);
}

/* ---- Host to device ---- */

void *accel_gpu_feed_begin_for(size_t target) {
  const struct cuda_device *device = rt_cuda_device();
  const struct ring *feed = &device->feed;
  int64_t slot = feed->sent % device->plan.ahead;
  feed->targets[slot] = target;
  if (feed->sent >= device->plan.ahead) RT_CUDA(cudaEventSynchronize(feed->copied[slot]));
  return feed->host + (size_t)slot * feed->stride;
}

void *accel_gpu_feed_begin(void) {
  return accel_gpu_feed_begin_for(0);
}

void accel_gpu_feed_send(void) {
  struct cuda_device *device = rt_cuda_device();
  struct ring *feed = &device->feed;
  accel_stream stream = device->streams[ACCEL_FEED];
  int64_t slot = feed->sent % device->plan.ahead;
  size_t at = (size_t)slot * feed->stride;
  if (feed->sent >= device->plan.ahead) RT_CUDA(cudaStreamWaitEvent(stream, feed->taken[slot], 0));
  RT_CUDA(cudaMemcpyAsync(feed->device + at, feed->host + at, device->plan.feed_bytes, cudaMemcpyHostToDevice, stream));
  RT_CUDA(cudaEventRecord(feed->copied[slot], stream));
  feed->sent++;
}

void accel_gpu_feed_take(void) {
  struct cuda_device *device = rt_cuda_device();
  struct ring *feed = &device->feed;
  accel_stream stream = device->streams[ACCEL_COMPUTE];
  int64_t slot = feed->done % device->plan.ahead;
  RT_CUDA(cudaStreamWaitEvent(stream, feed->copied[slot], 0));
  accel_gpu_copy(stream, device->arena + device->plan.feed_offset + feed->targets[slot] * device->plan.feed_bytes,
                 feed->device + (size_t)slot * feed->stride, device->plan.feed_bytes);
  RT_CUDA(cudaEventRecord(feed->taken[slot], stream));
  feed->done++;
}

/* ---- Device to host ---- */

void accel_gpu_report_send(void) {
  struct cuda_device *device = rt_cuda_device();
  struct ring *report = &device->report;
  accel_stream stream = device->streams[ACCEL_COMPUTE];
  int64_t slot = report->sent % device->plan.ahead;
  RT_CUDA(cudaMemcpyAsync(report->host + (size_t)slot * report->stride, device->arena + device->plan.report_offset,
                          device->plan.report_bytes, cudaMemcpyDeviceToHost, stream));
  RT_CUDA(cudaEventRecord(report->copied[slot], stream));
  report->sent++;
}

const void *accel_gpu_report(int age) {
  const struct cuda_device *device = rt_cuda_device();
  const struct ring *report = &device->report;
  if (age >= device->plan.ahead || report->sent <= age) return NULL;
  int64_t slot = (report->sent - 1 - age) % device->plan.ahead;
  RT_CUDA(cudaEventSynchronize(report->copied[slot]));
  rt_cuda_require_reads();
  return report->host + (size_t)slot * report->stride;
}
