/* What outlives a step, between the host's arena and the device's, which have one layout. */
#include "runtime/cuda/state.h"
#include "runtime/run/refresh.h"
#include "runtime/run/run.h"

#include <string.h>

static size_t bytes_of(const struct accel_state *state) {
  static const size_t widths[] = {4, 2, 2, 4, 8, 1};
  return (size_t)state->count * widths[state->dtype];
}

/* Whether it lies on the host alone, behind all that the device has too. */
static bool is_pinned(const struct accel_run *run, const struct accel_state *state) {
  const char *pinned = rt_cuda_device()->pinned;
  return pinned != NULL && (char *)run->arena.base + state->offset >= pinned;
}

void accel_cuda_send_states(const struct accel_run *run) {
  for (int i = 0; i < run->program->n_states; i++) {
    const struct accel_state *state = &run->program->states[i];
    if (is_pinned(run, state)) continue;
    accel_cuda_write(rt_cuda_device()->arena + state->offset, (char *)run->arena.base + state->offset, bytes_of(state));
  }
}

void accel_cuda_fetch_states(const struct accel_run *run) {
  for (int i = 0; i < run->program->n_states; i++) {
    const struct accel_state *state = &run->program->states[i];
    if (is_pinned(run, state)) continue;
    accel_cuda_read((char *)run->arena.base + state->offset, rt_cuda_device()->arena + state->offset, bytes_of(state));
  }
  accel_cuda_finish(accel_cuda_stream(ACCEL_COMPUTE));
}

void rt_refresh(const struct accel_run *run, void *at, size_t bytes) {
  const struct cuda_device *device = rt_cuda_device();
  size_t offset = (size_t)((char *)at - (char *)run->arena.base);
  if (device->arena == NULL || offset >= device->plan.feed_offset) return;
  accel_cuda_read(at, device->arena + offset, bytes);
}

void accel_cuda_read(void *host, const void *device, size_t bytes) {
  accel_stream stream = accel_cuda_stream(ACCEL_COMPUTE);
  RT_CUDA(cudaMemcpyAsync(host, device, bytes, cudaMemcpyDeviceToHost, stream));
  RT_CUDA(cudaStreamSynchronize(stream));
}

void accel_cuda_write(void *device, const void *host, size_t bytes) {
  accel_stream stream = accel_cuda_stream(ACCEL_COMPUTE);
  RT_CUDA(cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice, stream));
  RT_CUDA(cudaStreamSynchronize(stream));
}
