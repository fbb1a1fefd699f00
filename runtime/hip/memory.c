/* The device's arena: memory of hipMalloc, which is one range. */
#include "runtime/gpu/state.h"
#include "runtime/process/fail.h"

static const size_t huge_page = (size_t)2 << 20;
static char *allocated; /* what hipMalloc gave, in which the arena begins at a multiple of a page */

static bool fits(const struct cuda_device *device, size_t bytes, struct problem *problem) {
  size_t available, all;
  RT_CUDA(hipMemGetInfo(&available, &all));
  if (bytes <= available) return true;
  rt_problem(problem, "the plan takes %.2f GiB, GPU %d (%s) has %.2f of its %.2f GiB free", (double)bytes / 0x1p30,
             device->number, device->properties.name, (double)available / 0x1p30, (double)all / 0x1p30);
  return rt_help(problem, "stop what else runs there (rocm-smi lists it), or generate a smaller plan (data.batch_size, "
                          "memory.activation_checkpointing)");
}

bool rt_cuda_map(struct cuda_device *device, size_t bytes, struct problem *problem) {
  if (!fits(device, bytes + huge_page, problem)) return false;
  RT_CUDA(hipMalloc((void **)&allocated, bytes + huge_page));
  device->arena = allocated + (huge_page - (uintptr_t)allocated % huge_page) % huge_page;
  device->mapped = bytes;
  RT_CUDA(hipMemset(device->arena, 0, bytes));
  return true;
}

void rt_cuda_unmap(struct cuda_device *device) {
  RT_CUDA(hipFree(allocated));
  allocated = device->arena = NULL;
}
