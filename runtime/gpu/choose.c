/* Which GPU, and whether it will do. */
#include "runtime/gpu/state.h"
#include "runtime/gpu/vendor.h"
#include "runtime/process/device.h"
#include "runtime/process/world.h"

#include <stdlib.h>
#include <string.h>

static const char *plural(int count) {
  return count == 1 ? "" : "s";
}

static bool explain_none(cudaError_t error, struct problem *problem) {
  const struct gpu_vendor *vendor = &rt_gpu_vendor;
  const char *visible = getenv(vendor->visible);
  if (vendor->explain_driver(error, problem)) return false;
  if (error == cudaErrorNoDevice || error == cudaSuccess) {
    if (visible == NULL)
      rt_problem(problem, "no GPU on this machine");
    else
      rt_problem(problem, "no GPU among %s=%s", vendor->visible, visible);
    return rt_help(problem, "%s lists those that the driver sees; devices.kind: cpu needs none", vendor->lister);
  }
  rt_problem(problem, "%s does not start: %s (%s)", vendor->library, cudaGetErrorString(error),
             cudaGetErrorName(error));
  return rt_help(problem, "see whether %s", vendor->examine);
}

static bool check_architecture(const struct cuda_device *device, struct problem *problem) {
  const struct cudaDeviceProp *gpu = &device->properties;
  char targets[256] = "", own[ARCHITECTURE_NAME];
  for (const char *const *target = device->plan.architectures; *target != NULL; target++) {
    if (rt_gpu_vendor.runs_on(*target, gpu)) return true;
    strncat(targets, " ", sizeof targets - strlen(targets) - 1);
    strncat(targets, *target, sizeof targets - strlen(targets) - 1);
  }
  rt_gpu_vendor.architecture(gpu, own);
  rt_problem(problem, "GPU %d (%s) is %s %s, but the kernels are for%s", device->number, gpu->name,
             rt_gpu_vendor.article, own, targets);
  return rt_help(problem, "add \"%s\" to architectures[] of the program's text and build again", own);
}

static bool count_devices(int *count, struct problem *problem) {
  cudaError_t error = cudaGetDeviceCount(count);
  return (error == cudaSuccess && *count > 0) || explain_none(error, problem);
}

bool rt_device_present(struct problem *problem) {
  int count = 0;
  return count_devices(&count, problem);
}

bool rt_cuda_choose(struct cuda_device *device, struct problem *problem) {
  const struct world *world = rt_world();
  int count = 0;
  if (!count_devices(&count, problem)) return false;
  if (count > 1 && world->local_rank >= count) {
    rt_problem(problem, "%d ranks on a machine with %d GPU%s", world->local_ranks, count, plural(count));
    return rt_help(problem, "start at most %d there: devices.per_node", count);
  }
  /* Whoever starts ranks may show each its own GPU alone. */
  device->number = count > 1 ? world->local_rank : 0;
  RT_CUDA(cudaGetDeviceProperties(&device->properties, device->number));
  if (!check_architecture(device, problem)) return false;
  cudaError_t error = cudaSetDevice(device->number);
  if (error == cudaSuccess) error = cudaFree(NULL); /* makes the context */
  if (error == cudaSuccess) return true;
  rt_problem(problem, "GPU %d (%s) cannot be used: %s (%s)", device->number, device->properties.name,
             cudaGetErrorString(error), cudaGetErrorName(error));
  return rt_help(problem, "see with %s who holds it, and whether its compute mode lets more than one in",
                 rt_gpu_vendor.lister);
}

bool rt_cuda_fits(const struct cuda_device *device, size_t bytes, struct problem *problem) {
  size_t available, all;
  RT_CUDA(cudaMemGetInfo(&available, &all));
  if (bytes <= available) return true;
  rt_problem(problem, "the plan takes %.2f GiB, GPU %d (%s) has %.2f of its %.2f GiB free", (double)bytes / 0x1p30,
             device->number, device->properties.name, (double)available / 0x1p30, (double)all / 0x1p30);
  return rt_help(problem,
                 "stop what else runs there (%s lists it), or generate a smaller plan (data.batch_size, "
                 "memory.activation_checkpointing)",
                 rt_gpu_vendor.lister);
}
