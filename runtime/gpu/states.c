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

void accel_gpu_read(void *host, const void *device, size_t bytes) {
  accel_stream stream = accel_gpu_stream(ACCEL_COMPUTE);
  RT_CUDA(cudaMemcpyAsync(host, device, bytes, cudaMemcpyDeviceToHost, stream));
  RT_CUDA(cudaStreamSynchronize(stream));
}

void accel_gpu_write(void *device, const void *host, size_t bytes) {
  accel_stream stream = accel_gpu_stream(ACCEL_COMPUTE);
  RT_CUDA(cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice, stream));
  RT_CUDA(cudaStreamSynchronize(stream));
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
