/* What outlives a step, between the host's arena and the device's, which have one layout. */
#include "runtime/cuda/state.h"
#include "runtime/run.h"

#include <string.h>

static size_t bytes_of(const struct accel_state *state) {
  static const size_t widths[] = {4, 2, 2, 4, 8, 1};
  return (size_t)state->count * widths[state->dtype];
}

void accel_cuda_send_states(const struct accel_run *run) {
  for (int i = 0; i < run->program->n_states; i++) {
    const struct accel_state *state = &run->program->states[i];
    accel_cuda_write(rt_cuda_device()->arena + state->offset, (char *)run->arena.base + state->offset, bytes_of(state));
  }
}

void accel_cuda_fetch_states(const struct accel_run *run) {
  for (int i = 0; i < run->program->n_states; i++) {
    const struct accel_state *state = &run->program->states[i];
    accel_cuda_read((char *)run->arena.base + state->offset, rt_cuda_device()->arena + state->offset, bytes_of(state));
  }
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
