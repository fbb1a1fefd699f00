/* What outlives a step, between the host's arena and the device's, which have one layout. */
#include "runtime/base/dtype.h"
#include "runtime/gpu/state.h"
#include "runtime/process/device.h"

#include <string.h>

static size_t bytes_of(const struct accel_state *state) {
  return (size_t)state->count * rt_dtype_size(state->dtype);
}

/* Whether it is on the host alone, after all that the device has too. */
static bool is_pinned(const char *mirror, const struct accel_state *state) {
  const char *pinned = rt_cuda_device()->pinned;
  return pinned != NULL && mirror + state->offset >= pinned;
}

void accel_gpu_send_states(const struct accel_run *run) {
  const struct cuda_device *device = rt_cuda_device();
  const char *mirror = accel_arena(run);
  for (int i = 0; i < device->program->n_states; i++) {
    const struct accel_state *state = &device->program->states[i];
    if (is_pinned(mirror, state)) continue;
    accel_gpu_write(device->arena + state->offset, mirror + state->offset, bytes_of(state));
  }
}

void accel_gpu_fetch_states(const struct accel_run *run) {
  const struct cuda_device *device = rt_cuda_device();
  char *mirror = accel_arena(run);
  for (int i = 0; i < device->program->n_states; i++) {
    const struct accel_state *state = &device->program->states[i];
    if (is_pinned(mirror, state)) continue;
    accel_gpu_read(mirror + state->offset, device->arena + state->offset, bytes_of(state));
  }
  accel_gpu_finish(accel_gpu_stream(ACCEL_COMPUTE));
}

void rt_device_fetch(void *host, size_t offset, size_t bytes) {
  const struct cuda_device *device = rt_cuda_device();
  if (device->arena == NULL || offset >= device->plan.feed_offset) return;
  accel_gpu_read(host, device->arena + offset, bytes);
}

/* Copies what has memory of `bytes` at `first` of the arena to `host`, which has all of them, or from there. */
static void copy(char *host, size_t first, size_t bytes, bool reads) {
  const struct cuda_device *device = rt_cuda_device();
  accel_stream stream = accel_gpu_stream(ACCEL_COMPUTE);
  for (int i = 0; i < device->n_segments; i++) {
    const struct segment part = rt_cuda_within(device, i, first, bytes);
    if (part.bytes == 0) continue;
    char *mine = host + (part.first - first), *others = device->arena + part.first;
    if (reads)
      RT_CUDA(cudaMemcpyAsync(mine, others, part.bytes, cudaMemcpyDeviceToHost, stream));
    else
      RT_CUDA(cudaMemcpyAsync(others, mine, part.bytes, cudaMemcpyHostToDevice, stream));
  }
  RT_CUDA(cudaStreamSynchronize(stream));
  rt_cuda_require_reads();
}

static size_t offset_of(const void *address) {
  return (size_t)((const char *)address - rt_cuda_device()->arena);
}

void accel_gpu_read(void *host, const void *device, size_t bytes) {
  copy(host, offset_of(device), bytes, true);
}

void accel_gpu_write(void *device, const void *host, size_t bytes) {
  copy((char *)(uintptr_t)host, offset_of(device), bytes, false);
}

void *accel_gpu_pin(void *host, size_t bytes) {
  struct cuda_device *device = rt_cuda_device();
  void *address;
  RT_CUDA(cudaHostRegister(host, bytes, cudaHostRegisterMapped));
  RT_CUDA(cudaHostGetDevicePointer(&address, host, 0));
  device->pinned = host;
  return address;
}

void rt_cuda_unpin(struct cuda_device *device) {
  if (device->pinned != NULL) RT_CUDA(cudaHostUnregister(device->pinned));
  device->pinned = NULL;
}
