#include "runtime/gpu/vendor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* CUDA writes a version as 1000 major + 10 minor. */
static bool explain_driver(cudaError_t error, struct problem *problem) {
  int driver = 0, built = 0;
  cudaDriverGetVersion(&driver);
  cudaRuntimeGetVersion(&built);
  if (driver == 0) {
    rt_problem(problem, "no NVIDIA driver on this machine");
    rt_help(problem, "run on a machine with a GPU, install its driver, or generate with devices.kind: cpu");
    return true;
  }
  if (error != cudaErrorInsufficientDriver) return false;
  rt_problem(problem, "the NVIDIA driver is for CUDA %d.%d, older than the CUDA %d.%d that this program was built with",
             driver / 1000, driver % 1000 / 10, built / 1000, built % 1000 / 10);
  rt_help(problem, "update the driver, or build the program with an older toolkit");
  return true;
}

/* Code for sm_80 runs on 8.0 and on 8.6, that for sm_90a on 9.0 alone. */
static bool runs_on(const char *target, const struct cudaDeviceProp *gpu) {
  char *end;
  long number = strtol(target + strlen("sm_"), &end, 10);
  if (*end != '\0') return number == 10 * gpu->major + gpu->minor;
  return number / 10 == gpu->major && number % 10 <= gpu->minor;
}

static void architecture(const struct cudaDeviceProp *gpu, char name[ARCHITECTURE_NAME]) {
  snprintf(name, ARCHITECTURE_NAME, "sm_%d%d", gpu->major, gpu->minor);
}

const struct gpu_vendor rt_gpu_vendor = {.library = "CUDA",
                                         .blas = "cuBLASLt",
                                         .visible = "CUDA_VISIBLE_DEVICES",
                                         .lister = "nvidia-smi",
                                         .examine = "nvidia-smi works on this machine",
                                         .article = "an",
                                         .explain_driver = explain_driver,
                                         .runs_on = runs_on,
                                         .architecture = architecture};
