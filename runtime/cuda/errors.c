#include "runtime/gpu/check.h"

/* What helps against an error of CUDA; NULL: nothing is known. */
static const char *help_for(cudaError_t error) {
  switch (error) {
  case cudaErrorIllegalAddress:
  case cudaErrorMisalignedAddress:
  case cudaErrorLaunchFailure:
    return "a kernel read or wrote where it must not, perhaps before the call that reports it: "
           "run with ACCEL_GRAPHS=no and CUDA_LAUNCH_BLOCKING=1 under compute-sanitizer to see which";
  case cudaErrorMemoryAllocation:
    return "the GPU's memory is full: stop what else runs there (nvidia-smi lists it), or generate a smaller plan "
           "(data.batch_size, memory.activation_checkpointing)";
  case cudaErrorNoKernelImageForDevice:
  case cudaErrorInvalidDeviceFunction:
    return "the program holds no kernel for this GPU: name its architecture among architectures[] of the program's "
           "text and build again";
  case cudaErrorECCUncorrectable:
  case cudaErrorHardwareStackError:
    return "the GPU itself is at fault: look at dmesg and nvidia-smi -q, use another";
  case cudaErrorLaunchTimeout:
    return "a kernel ran longer than the system lets it: use a GPU that drives no display";
  default:
    return NULL;
  }
}

void rt_cuda_check(cudaError_t error, const char *call, const char *file, int line) {
  if (error == cudaSuccess) return;
  struct refusal refusal = {"CUDA", call, file, line, cudaGetErrorName(error), cudaGetErrorString(error)};
  rt_refused(&refusal, help_for(error));
}
