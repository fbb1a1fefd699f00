#include "runtime/gpu/check.h"

/* What helps against an error of HIP; NULL: nothing is known. */
static const char *help_for(hipError_t error) {
  switch (error) {
  case hipErrorIllegalAddress:
  case hipErrorLaunchFailure:
    return "a kernel read or wrote where it must not, perhaps before the call that reports it: "
           "run with ACCEL_GRAPHS=no and AMD_SERIALIZE_KERNEL=3 to see which";
  case hipErrorOutOfMemory:
    return "the GPU's memory is full: stop what else runs there (rocm-smi lists it), or generate a smaller plan "
           "(data.batch_size, memory.activation_checkpointing)";
  case hipErrorNoBinaryForGpu:
  case hipErrorInvalidDeviceFunction:
    return "the program holds no kernel for this GPU: name its architecture among architectures[] of the program's "
           "text and build again";
  default:
    return NULL;
  }
}

void rt_cuda_check(hipError_t error, const char *call, const char *file, int line) {
  if (error == hipSuccess) return;
  struct refusal refusal = {"HIP", call, file, line, hipGetErrorName(error), hipGetErrorString(error)};
  rt_refused(&refusal, help_for(error));
}
