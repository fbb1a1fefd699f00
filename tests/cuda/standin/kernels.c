/* Kernels that nvcc has compiled: their launches are checked and noted. Those of an object with its PTX in plain text
 * run, instruction by instruction; others compute nothing. */
#include "tests/cuda/standin/core.h"

#include <stdlib.h>

#include "tests/cuda/standin/ptx/image.h"
#include "tests/cuda/standin/ptx/program.h"

/* What an object registers. */
struct image {
  const void *binary;
  struct module *module; /* NULL: it has no PTX */
};

struct compiled {
  const void *function;
  const char *name;
  struct image *image;
  struct compiled *next;
};
static struct compiled *kernels;

static struct {
  dim3 grid, block;
  size_t shared;
  cudaStream_t stream;
} configuration;

void **__cudaRegisterFatBinary(void *binary);
void **__cudaRegisterFatBinary(void *binary) {
  struct image *image = calloc(1, sizeof *image);
  if (image == NULL) fault("no memory");
  size_t length;
  const char *text =
      getenv("STANDIN_PTX") != NULL ? image_file(getenv("STANDIN_PTX"), &length) : image_text(binary, &length);
  if (text != NULL) image->module = module_read("trainer.ptx", text, length);
  return (void **)(void *)image;
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
  (void)device, (void)limit, (void)thread, (void)block, (void)block_size, (void)grid_size, (void)warp;
  struct compiled *kernel = malloc(sizeof *kernel);
  if (kernel == NULL) fault("no memory");
  *kernel = (struct compiled){host, name, (struct image *)(void *)handle, kernels};
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

/* The function of the program that launches kernels now, the outermost one. */
static struct {
  const char *name;
  uint32_t number, depth, launches;
} operation;

void standin_operation_begin(const char *name);
void standin_operation_begin(const char *name) {
  if (operation.depth++ > 0) return;
  operation.name = name;
  operation.number++;
  operation.launches = 0;
}
void standin_operation_end(void);
void standin_operation_end(void) {
  if (--operation.depth == 0 && operation.launches == 0) fault("%s launches no kernel", operation.name);
}

static void run_nothing(const void *arguments) {
  (void)arguments;
}

cudaError_t cudaLaunchKernel(const void *function, dim3 grid, dim3 block, void **arguments, size_t shared,
                             cudaStream_t stream) {
  const struct compiled *compiled = kernels;
  while (compiled != NULL && compiled->function != function) compiled = compiled->next;
  if (compiled == NULL) fault("cudaLaunchKernel of what is no kernel");
  const char *name = compiled->name;
  operation.launches++;
  if (grid.x == 0 || grid.y == 0 || grid.z == 0 || grid.y > 65535 || grid.z > 65535)
    fault("%s: a grid of %u x %u x %u", name, grid.x, grid.y, grid.z);
  if (block.x * block.y * block.z == 0 || block.x * block.y * block.z > 1024 || block.z > 64)
    fault("%s: a block of %u x %u x %u", name, block.x, block.y, block.z);
  if (compiled->image->module == NULL) {
    standin_launch(stream, name, run_nothing, &grid, sizeof grid);
    return cudaSuccess;
  }
  struct kernel *kernel = module_kernel(compiled->image->module, name);
  if (kernel == NULL) fault("%s: the PTX has no such kernel", name);
  size_t bytes;
  void *launch = ptx_launch_of(kernel, (uint32_t[]){grid.x, grid.y, grid.z}, (uint32_t[]){block.x, block.y, block.z},
                               (uint32_t)shared, arguments, &bytes);
  ((struct ptx_launch *)launch)->operation = operation.depth > 0 ? operation.number : 0;
  standin_launch(stream, name, ptx_launch_run, launch, bytes);
  free(launch);
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
