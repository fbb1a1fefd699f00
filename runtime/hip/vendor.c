#include "runtime/gpu/vendor.h"

#include <stdio.h>
#include <string.h>

/* HIP has no error of its own for a driver that is missing or old. */
static bool explain_driver(hipError_t error, struct problem *problem) {
  (void)error, (void)problem;
  return false;
}

/* "gfx90a" is that of "gfx90a:sramecc+:xnack-", which names what the device is set to, too. */
static void architecture(const hipDeviceProp_t *gpu, char name[ARCHITECTURE_NAME]) {
  snprintf(name, ARCHITECTURE_NAME, "%.*s", (int)strcspn(gpu->gcnArchName, ":"), gpu->gcnArchName);
}

static bool runs_on(const char *target, const hipDeviceProp_t *gpu) {
  char own[ARCHITECTURE_NAME];
  architecture(gpu, own);
  return strcmp(target, own) == 0;
}

const struct gpu_vendor rt_gpu_vendor = {.library = "HIP",
                                         .blas = "hipBLASLt",
                                         .visible = "HIP_VISIBLE_DEVICES",
                                         .lister = "rocm-smi",
                                         .examine =
                                             "rocminfo works on this machine, and whether /dev/kfd may be opened",
                                         .article = "a",
                                         .explain_driver = explain_driver,
                                         .runs_on = runs_on,
                                         .architecture = architecture};
