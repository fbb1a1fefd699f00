/* The device: start, end, streams and the order between them. */
#include "runtime/gpu/state.h"
#include "runtime/process/fail.h"
#include "runtime/process/world.h"

#include <stdlib.h>

void (*rt_cuda_close_gemms)(void);
void (*rt_cuda_close_engines)(void);
void (*rt_cuda_close_collectives)(void);

struct cuda_device *rt_cuda_device(void) {
  static struct cuda_device device;
  return &device;
}

/* Streams that are in one queue to the GPU wait for each other's work, and there are 8 queues unless the environment
 * says otherwise. With as many as CUDA has, a message of a stage does not hold up what the stage computes meanwhile.
 * CUDA reads this with its first call. */
static void separate_streams(const struct accel_program *program) {
  if (program->mesh[ACCEL_PP] > 1) setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 1);
}

static void open_streams(struct cuda_device *device) {
  int lowest, highest;
  RT_CUDA(cudaDeviceGetStreamPriorityRange(&lowest, &highest));
  for (int i = 0; i < ACCEL_STREAMS; i++) {
    int priority = i == ACCEL_TRAFFIC ? highest : lowest;
    RT_CUDA(cudaStreamCreateWithPriority(&device->streams[i], cudaStreamNonBlocking, priority));
  }
}

static void open_events(struct cuda_device *device) {
  int count = device->plan.events;
  device->events = calloc((size_t)count + 1, sizeof *device->events);
  if (device->events == NULL) {
    struct problem problem;
    rt_problem(&problem, "no memory for %d events", count);
    rt_fail(&problem, 1);
  }
  for (int i = 0; i < count; i++) RT_CUDA(cudaEventCreateWithFlags(&device->events[i], cudaEventDisableTiming));
}

/* cuBLASLt wants its workspace at a multiple of 256. */
static void align_workspace(struct accel_gpu_plan *plan) {
  size_t first = rt_cuda_stride(plan->workspace_offset), lost = first - plan->workspace_offset;
  plan->workspace_offset = first;
  plan->workspace_bytes = plan->workspace_bytes > lost ? plan->workspace_bytes - lost : 0;
}

void accel_gpu_open(const struct accel_program *program, const struct accel_gpu_plan *plan) {
  struct cuda_device *device = rt_cuda_device();
  struct problem problem;
  device->program = program;
  device->plan = *plan;
  align_workspace(&device->plan);
  separate_streams(program);
  size_t own = rt_cuda_stride(plan->arena_bytes);
  size_t staging = rt_cuda_stride(plan->feed_bytes) * (size_t)plan->ahead;
  bool good = rt_cuda_choose(device, &problem) && rt_cuda_map(device, own + staging, &problem);
  rt_world_require(good, &problem, 1);
  open_streams(device);
  open_events(device);
  rt_cuda_prefetch_open(device);
  rt_cuda_rings_open(device, device->arena + own);
  RT_CUDA(cudaDeviceSynchronize()); /* the arena is zero before any stream, none of which waits for another, reads it */
}

void accel_gpu_close(void) {
  struct cuda_device *device = rt_cuda_device();
  RT_CUDA(cudaDeviceSynchronize());
  rt_cuda_graphs_close();
  if (rt_cuda_close_collectives != NULL) rt_cuda_close_collectives();
  if (rt_cuda_close_engines != NULL) rt_cuda_close_engines();
  if (rt_cuda_close_gemms != NULL) rt_cuda_close_gemms();
  rt_cuda_rings_close(device);
  for (int i = 0; i < device->plan.events; i++) RT_CUDA(cudaEventDestroy(device->events[i]));
  free(device->events);
  rt_cuda_prefetch_close(device);
  for (int i = 0; i < ACCEL_STREAMS; i++) RT_CUDA(cudaStreamDestroy(device->streams[i]));
  rt_cuda_unpin(device);
  rt_cuda_unmap(device);
}

void *accel_gpu_arena(void) {
  return rt_cuda_device()->arena;
}

accel_stream accel_gpu_stream(enum accel_stream_name name) {
  return rt_cuda_device()->streams[name];
}

/* ---- Order ---- */

void accel_gpu_record(int event, accel_stream stream) {
  RT_CUDA(cudaEventRecord(rt_cuda_device()->events[event], stream));
}

void accel_gpu_wait(accel_stream stream, int event) {
  RT_CUDA(cudaStreamWaitEvent(stream, rt_cuda_device()->events[event], 0));
}

void accel_gpu_finish(accel_stream stream) {
  RT_CUDA(cudaStreamSynchronize(stream));
}

/* ---- Memory ---- */

void accel_gpu_zero(accel_stream stream, void *device, size_t bytes) {
  RT_CUDA(cudaMemsetAsync(device, 0, bytes, stream));
}

void accel_gpu_copy(accel_stream stream, void *to, const void *from, size_t bytes) {
  RT_CUDA(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream));
}

/* ---- Kernels ---- */

void accel_gpu_launched(const char *kernel, const char *file, int line) {
  rt_cuda_check(cudaGetLastError(), kernel, file, line);
}
