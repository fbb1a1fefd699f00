/* The device's arena: memory of hipMalloc, which is one range. */
#include "runtime/gpu/state.h"
#include "runtime/process/fail.h"

#include <stdlib.h>

static const size_t huge_page = (size_t)2 << 20;
static char *allocated; /* what hipMalloc gave, in which the arena begins at a multiple of a page */

bool rt_cuda_map(struct cuda_device *device, size_t bytes, struct problem *problem) {
  if (!rt_cuda_fits(device, bytes + huge_page, problem)) return false;
  RT_CUDA(hipMalloc((void **)&allocated, bytes + huge_page));
  device->arena = allocated + (huge_page - (uintptr_t)allocated % huge_page) % huge_page;
  device->reserved = bytes;
  rt_cuda_find_segments(device, bytes);
  RT_CUDA(hipMemset(device->arena, 0, bytes));
  return true;
}

void rt_cuda_unmap(struct cuda_device *device) {
  RT_CUDA(hipFree(allocated));
  free(device->segments);
  allocated = device->arena = NULL;
}
