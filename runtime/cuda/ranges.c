/* Ranges of a timeline. NVTX is headers alone: without a profiler a range is a test of one pointer. */
#include "include/accel/gpu/device.h"

#include <nvtx3/nvToolsExt.h>

void accel_gpu_range_begin(const char *name) {
  nvtxRangePushA(name);
}

void accel_gpu_range_end(void) {
  nvtxRangePop();
}
