/* Kernels that nvcc has compiled: their launches are checked and noted, and compute nothing. */
#include "tests/cuda/standin/core.h"

#include <stdlib.h>

struct kernel {
  const void *function;
  const char *name;
  struct kernel *next;
};
static struct kernel *kernels;

static struct {
  dim3 grid, block;
  size_t shared;
  cudaStream_t stream;
} configuration;

void **__cudaRegisterFatBinary(void *binary);
void **__cudaRegisterFatBinary(void *binary) {
  static void *handle;
  (void)binary;
  return &handle;
}
void __cudaRegisterFatBinaryEnd(void **handle);
void __cudaRegisterFatBinaryEnd(void **handle) {
  (void)handle;
}
void __cudaUnregisterFatBinary(void **handle);
void __cudaUnregisterFatBinary(void **handle) {
  (void)handle;
}
char __cudaInitModule(void **handle);
char __cudaInitModule(void **handle) {
  (void)handle;
  return 1;
}
void __cudaRegisterVar(void **handle, char *host, char *device, const char *name, int external, size_t size,
                       int constant, int global);
void __cudaRegisterVar(void **handle, char *host, char *device, const char *name, int external, size_t size,
                       int constant, int global) {
  (void)handle, (void)host, (void)device, (void)name, (void)external, (void)size, (void)constant, (void)global;
}

void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name, int limit, uint3 *thread,
                            uint3 *block, dim3 *block_size, dim3 *grid_size, int *warp);
void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name, int limit, uint3 *thread,
                            uint3 *block, dim3 *block_size, dim3 *grid_size, int *warp) {
  (void)handle, (void)device, (void)limit, (void)thread, (void)block, (void)block_size, (void)grid_size, (void)warp;
  struct kernel *kernel = malloc(sizeof *kernel);
  if (kernel == NULL) fault("no memory");
  *kernel = (struct kernel){host, name, kernels};
  kernels = kernel;
}

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, cudaStream_t stream);
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, cudaStream_t stream) {
  configuration.grid = grid;
  configuration.block = block;
  configuration.shared = shared;
  configuration.stream = stream;
  return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream);
cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream) {
  *grid = configuration.grid;
  *block = configuration.block;
  *shared = configuration.shared;
  *(cudaStream_t *)stream = configuration.stream;
  return cudaSuccess;
}

static void run_nothing(const void *arguments) {
  (void)arguments;
}

cudaError_t cudaLaunchKernel(const void *function, dim3 grid, dim3 block, void **arguments, size_t shared,
                             cudaStream_t stream) {
  const char *name = NULL;
  (void)arguments, (void)shared;
  for (const struct kernel *at = kernels; at != NULL; at = at->next)
    if (at->function == function) name = at->name;
  if (name == NULL) fault("cudaLaunchKernel of what is no kernel");
  if (grid.x == 0 || grid.y == 0 || grid.z == 0 || grid.y > 65535 || grid.z > 65535)
    fault("%s: a grid of %u x %u x %u", name, grid.x, grid.y, grid.z);
  if (block.x * block.y * block.z == 0 || block.x * block.y * block.z > 1024 || block.z > 64)
    fault("%s: a block of %u x %u x %u", name, block.x, block.y, block.z);
  standin_launch(stream, name, run_nothing, &grid, sizeof grid);
  return cudaSuccess;
}

/* What nvcc 13 writes instead: kernels are found first. */
cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *function);
cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *function) {
  *(const void **)kernel = function;
  return cudaSuccess;
}
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **arguments, size_t shared,
                               cudaStream_t stream);
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **arguments, size_t shared,
                               cudaStream_t stream) {
  return cudaLaunchKernel((const void *)kernel, grid, block, arguments, shared, stream);
}
