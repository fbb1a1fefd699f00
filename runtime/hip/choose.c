/* Which GPU, and whether it will do. */
#include "runtime/gpu/state.h"
#include "runtime/process/device.h"
#include "runtime/process/world.h"

#include <stdlib.h>
#include <string.h>

static bool explain_none(hipError_t error, struct problem *problem) {
  const char *visible = getenv("HIP_VISIBLE_DEVICES");
  if (error == hipErrorNoDevice || error == hipSuccess) {
    rt_problem(problem, "no GPU%s%s", visible != NULL ? " among HIP_VISIBLE_DEVICES=" : " on this machine",
               visible != NULL ? visible : "");
    return rt_help(problem, "rocm-smi lists those that the driver sees; devices.kind: cpu needs none");
  }
  rt_problem(problem, "HIP does not start: %s (%s)", hipGetErrorString(error), hipGetErrorName(error));
  return rt_help(problem, "see whether rocminfo works on this machine, and whether /dev/kfd may be opened");
}

static bool count_devices(int *count, struct problem *problem) {
  hipError_t error = hipGetDeviceCount(count);
  return (error == hipSuccess && *count > 0) || explain_none(error, problem);
}

bool rt_device_present(struct problem *problem) {
  int count = 0;
  return count_devices(&count, problem);
}

/* "gfx90a" is that of "gfx90a:sramecc+:xnack-", which names what the device is set to, too. */
static bool runs_on(const char *target, const char *name) {
  size_t length = strlen(target);
  return strncmp(target, name, length) == 0 && (name[length] == ':' || name[length] == '\0');
}

static bool check_architecture(const struct cuda_device *device, struct problem *problem) {
  const hipDeviceProp_t *gpu = &device->properties;
  char targets[256] = "";
  for (const char *const *target = device->plan.architectures; *target != NULL; target++) {
    if (runs_on(*target, gpu->gcnArchName)) return true;
    strncat(targets, " ", sizeof targets - strlen(targets) - 1);
    strncat(targets, *target, sizeof targets - strlen(targets) - 1);
  }
  rt_problem(problem, "GPU %d (%s) is a %s, but the kernels are for%s", device->number, gpu->name, gpu->gcnArchName,
             targets);
  return rt_help(problem, "add its name to architectures[] of the program's text and build again");
}

bool rt_cuda_choose(struct cuda_device *device, struct problem *problem) {
  const struct world *world = rt_world();
  int count = 0;
  if (!count_devices(&count, problem)) return false;
  if (count > 1 && world->local_rank >= count) {
    rt_problem(problem, "%d ranks on a machine with %d GPUs", world->local_ranks, count);
    return rt_help(problem, "start at most %d there: devices.per_node", count);
  }
  /* Whoever starts ranks may show each its own GPU alone. */
  device->number = count > 1 ? world->local_rank : 0;
  RT_CUDA(hipGetDeviceProperties(&device->properties, device->number));
  if (!check_architecture(device, problem)) return false;
  RT_CUDA(hipSetDevice(device->number));
  return true;
}
