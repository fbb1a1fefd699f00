/* Which GPU, and whether it will do. */
#include "runtime/gpu/state.h"
#include "runtime/process/device.h"
#include "runtime/process/world.h"

#include <stdlib.h>
#include <string.h>

static const char *plural(int count) {
  return count == 1 ? "" : "s";
}

/* CUDA writes a version as 1000 major + 10 minor. */
static bool explain_none(cudaError_t error, struct problem *problem) {
  int driver = 0, built = 0;
  cudaDriverGetVersion(&driver);
  cudaRuntimeGetVersion(&built);
  if (driver == 0) {
    rt_problem(problem, "no NVIDIA driver on this machine");
    return rt_help(problem, "run on a machine with a GPU, install its driver, or generate with devices.kind: cpu");
  }
  if (error == cudaErrorInsufficientDriver) {
    rt_problem(problem,
               "the NVIDIA driver is for CUDA %d.%d, older than the CUDA %d.%d that this program was built with",
               driver / 1000, driver % 1000 / 10, built / 1000, built % 1000 / 10);
    return rt_help(problem, "update the driver, or build the program with an older toolkit");
  }
  if (error == cudaErrorNoDevice || error == cudaSuccess) {
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    rt_problem(problem, "no GPU%s%s", visible != NULL ? " among CUDA_VISIBLE_DEVICES=" : " on this machine",
               visible != NULL ? visible : "");
    return rt_help(problem, "nvidia-smi lists those that the driver sees; devices.kind: cpu needs none");
  }
  rt_problem(problem, "CUDA does not start: %s (%s)", cudaGetErrorString(error), cudaGetErrorName(error));
  return rt_help(problem, "see whether nvidia-smi works on this machine");
}

/* Code for sm_80 runs on 8.0 and on 8.6, that for sm_90a on 9.0 alone. */
static bool runs_on(const char *target, int major, int minor) {
  char *end;
  long number = strtol(target + strlen("sm_"), &end, 10);
  if (*end != '\0') return number == 10 * major + minor;
  return number / 10 == major && number % 10 <= minor;
}

static bool check_architecture(const struct cuda_device *device, struct problem *problem) {
  const struct cudaDeviceProp *gpu = &device->properties;
  char targets[256] = "";
  for (const char *const *target = device->plan.architectures; *target != NULL; target++) {
    if (runs_on(*target, gpu->major, gpu->minor)) return true;
    strncat(targets, " ", sizeof targets - strlen(targets) - 1);
    strncat(targets, *target, sizeof targets - strlen(targets) - 1);
  }
  rt_problem(problem, "GPU %d (%s) is an sm_%d%d, but the kernels are for%s", device->number, gpu->name, gpu->major,
             gpu->minor, targets);
  return rt_help(problem, "add \"sm_%d%d\" to architectures[] of the program's text and build again", gpu->major,
                 gpu->minor);
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
  return rt_help(problem, "see with nvidia-smi who holds it, and whether its compute mode lets more than one in");
}
