/* The runtime library: the machine, memory, copies. */
#include "tests/cuda/standin/core.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- The machine ---- */

bool standin_has_device;

const char *cudaGetErrorName(cudaError_t error) {
  static char text[32];
  if (error == cudaErrorNoDevice) return "cudaErrorNoDevice";
  if (error == cudaErrorInsufficientDriver) return "cudaErrorInsufficientDriver";
  if (error == cudaErrorMemoryAllocation) return "cudaErrorMemoryAllocation";
  if (error == cudaErrorIllegalAddress) return "cudaErrorIllegalAddress";
  snprintf(text, sizeof text, "cudaError %d", (int)error);
  return text;
}

const char *cudaGetErrorString(cudaError_t error) {
  return error == cudaErrorIllegalAddress ? "an illegal memory access was encountered" : cudaGetErrorName(error);
}

cudaError_t cudaGetLastError(void) {
  return call("cudaGetLastError") ? cudaErrorInvalidConfiguration : cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int *version) {
  *version = (int)setting("STANDIN_DRIVER", 13000);
  return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int *version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}

cudaError_t cudaGetDeviceCount(int *count) {
  int driver = (int)setting("STANDIN_DRIVER", 13000);
  host_clock();
  *count = driver > 0 ? (int)setting("STANDIN_GPUS", 8) : 0;
  if (driver / 1000 < CUDART_VERSION / 1000) return cudaErrorInsufficientDriver;
  return *count > 0 ? cudaSuccess : cudaErrorNoDevice;
}

static void require_device(int number, const char *what) {
  if (number < 0 || number >= setting("STANDIN_GPUS", 8)) fault("%s of GPU %d, which is not there", what, number);
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *properties, int number) {
  require_device(number, "cudaGetDeviceProperties");
  *properties = (struct cudaDeviceProp){.name = "stand-in",
                                        .totalGlobalMem = (size_t)setting("STANDIN_MEMORY", 16LL << 30),
                                        .major = (int)setting("STANDIN_ARCH", 90) / 10,
                                        .minor = (int)setting("STANDIN_ARCH", 90) % 10,
                                        .multiProcessorCount = 4};
  return cudaSuccess;
}

cudaError_t cudaSetDevice(int number) {
  require_device(number, "cudaSetDevice");
  standin_has_device = true;
  return call("cudaSetDevice") ? cudaErrorDevicesUnavailable : cudaSuccess;
}

cudaError_t cudaGetDevice(int *number) {
  *number = 0;
  return cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t *available, size_t *all) {
  *all = (size_t)setting("STANDIN_MEMORY", 16LL << 30);
  *available = *all - memory_used();
  return cudaSuccess;
}

/* ---- Memory ---- */

static void *allocate(size_t bytes) {
  void *made = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
  if (made == NULL) fault("no memory");
  memset(made, 0xff, bytes); /* not a number, until something is written */
  return made;
}

cudaError_t cudaMalloc(void **address, size_t bytes) {
  if (call("cudaMalloc")) return cudaErrorMemoryAllocation;
  no_capture("cudaMalloc");
  *address = allocate(bytes);
  memory_add(*address, bytes, DEVICE, "cudaMalloc");
  return cudaSuccess;
}

cudaError_t cudaFree(void *address) {
  call("cudaFree");
  if (address == NULL) return cudaSuccess;
  no_capture("cudaFree");
  memory_remove(address, "cudaFree");
  free(address);
  return cudaSuccess;
}

cudaError_t cudaHostAlloc(void **address, size_t bytes, unsigned flags) {
  (void)flags;
  if (call("cudaHostAlloc")) return cudaErrorMemoryAllocation;
  no_capture("cudaHostAlloc");
  *address = allocate(bytes);
  memory_add(*address, bytes, PINNED, "cudaHostAlloc");
  return cudaSuccess;
}

cudaError_t cudaHostRegister(void *address, size_t bytes, unsigned flags) {
  (void)flags;
  if (call("cudaHostRegister")) return cudaErrorMemoryAllocation;
  no_capture("cudaHostRegister");
  memory_add(address, bytes, PINNED, "cudaHostRegister");
  return cudaSuccess;
}

cudaError_t cudaHostGetDevicePointer(void **address, void *host, unsigned flags) {
  (void)flags;
  memory_require(host, 1, PINNED, "cudaHostGetDevicePointer");
  *address = host;
  return call("cudaHostGetDevicePointer") ? cudaErrorInvalidValue : cudaSuccess;
}

cudaError_t cudaHostUnregister(void *address) {
  call("cudaHostUnregister");
  no_capture("cudaHostUnregister");
  memory_remove(address, "cudaHostUnregister");
  return cudaSuccess;
}

cudaError_t cudaFreeHost(void *address) {
  call("cudaFreeHost");
  no_capture("cudaFreeHost");
  memory_remove(address, "cudaFreeHost");
  free(address);
  return cudaSuccess;
}

/* ---- Copies ---- */

struct copy {
  void *to;
  const void *from;
  size_t bytes;
};

static void run_copy(const void *arguments) {
  const struct copy *copy = arguments;
  touch(copy->from, copy->bytes, false);
  touch(copy->to, copy->bytes, true);
  memmove(copy->to, copy->from, copy->bytes);
}

/* The host's side of a copy may be pageable; the device's never is. */
static void check_copy(const struct copy *copy, enum cudaMemcpyKind kind, const char *what) {
  bool from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
  bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
  if (kind == cudaMemcpyHostToHost || kind == cudaMemcpyDefault) fault("%s: say between which memories", what);
  if (from_device) memory_require(copy->from, copy->bytes, DEVICE, what);
  if (to_device) memory_require(copy->to, copy->bytes, DEVICE, what);
  const void *host = from_device ? copy->to : copy->from;
  if (from_device && to_device) return;
  if (memory_kind_of(host) == DEVICE) fault("%s: %p is the device's, not the host's", what, host);
  if (memory_kind_of(host) == PINNED) memory_require(host, copy->bytes, PINNED, what);
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind, cudaStream_t stream) {
  const struct copy copy = {to, from, bytes};
  enum cudaStreamCaptureStatus status;
  check_copy(&copy, kind, "cudaMemcpyAsync");
  if (call("cudaMemcpyAsync")) return cudaErrorIllegalAddress;
  const void *host = kind == cudaMemcpyDeviceToHost ? to : from;
  bool pageable = kind != cudaMemcpyDeviceToDevice && memory_kind_of(host) == PAGEABLE;
  cudaStreamIsCapturing(stream, &status);
  if (pageable && status == cudaStreamCaptureStatusActive) fault("cudaMemcpyAsync: pageable memory in a graph");
  submit(stream, "cudaMemcpyAsync", run_copy, &copy, sizeof copy);
  if (pageable && kind == cudaMemcpyDeviceToHost) cudaStreamSynchronize(stream); /* so does CUDA */
  return cudaSuccess;
}

cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind) {
  no_capture("cudaMemcpy");
  cudaError_t error = cudaMemcpyAsync(to, from, bytes, kind, NULL);
  cudaStreamSynchronize(NULL);
  return error;
}

struct fill {
  void *to;
  int value;
  size_t bytes;
};

static void run_fill(const void *arguments) {
  const struct fill *fill = arguments;
  touch(fill->to, fill->bytes, true);
  memset(fill->to, fill->value, fill->bytes);
}

cudaError_t cudaMemsetAsync(void *to, int value, size_t bytes, cudaStream_t stream) {
  const struct fill fill = {to, value, bytes};
  memory_require(to, bytes, DEVICE, "cudaMemsetAsync");
  if (call("cudaMemsetAsync")) return cudaErrorIllegalAddress;
  submit(stream, "cudaMemsetAsync", run_fill, &fill, sizeof fill);
  return cudaSuccess;
}

cudaError_t cudaMemset(void *to, int value, size_t bytes) {
  no_capture("cudaMemset");
  return cudaMemsetAsync(to, value, bytes, NULL);
}
