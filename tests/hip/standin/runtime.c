/* HIP's runtime. The machine that is played has the GPUs of tests/cuda/standin/standin.h, of the architecture
 * STANDIN_GFX (gfx90a:sramecc+:xnack-). */
#include "tests/hip/standin/same.h"

#include <assert.h>
#include <hip/hip_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>

static_assert((int)hipMemcpyHostToDevice == 1 && (int)hipMemcpyDeviceToHost == 2 && (int)hipMemcpyDeviceToDevice == 3,
              "CUDA's numbers of directions");
static_assert((int)hipErrorOutOfMemory == 2 && (int)hipErrorNoDevice == 100, "CUDA's numbers of errors");
static_assert(hipEventDisableTiming == 2 && hipStreamNonBlocking == 1 && hipHostRegisterMapped == 2 &&
                  (int)hipStreamCaptureModeThreadLocal == 1,
              "CUDA's numbers of ways");

SAME(hipDeviceGetStreamPriorityRange, cudaDeviceGetStreamPriorityRange);
SAME(hipDeviceSynchronize, cudaDeviceSynchronize);
SAME(hipEventCreateWithFlags, cudaEventCreateWithFlags);
SAME(hipEventDestroy, cudaEventDestroy);
SAME(hipEventElapsedTime, cudaEventElapsedTime);
SAME(hipEventRecord, cudaEventRecord);
SAME(hipEventSynchronize, cudaEventSynchronize);
SAME(hipFree, cudaFree);
SAME(hipGetDeviceCount, cudaGetDeviceCount);
SAME(hipGetErrorName, cudaGetErrorName);
SAME(hipGetErrorString, cudaGetErrorString);
SAME(hipGetLastError, cudaGetLastError);
SAME(hipGraphDestroy, cudaGraphDestroy);
SAME(hipGraphExecDestroy, cudaGraphExecDestroy);
SAME(hipGraphInstantiateWithFlags, cudaGraphInstantiateWithFlags);
SAME(hipGraphLaunch, cudaGraphLaunch);
SAME(hipHostFree, cudaFreeHost);
SAME(hipHostGetDevicePointer, cudaHostGetDevicePointer);
SAME(hipHostMalloc, cudaHostAlloc);
SAME(hipHostRegister, cudaHostRegister);
SAME(hipHostUnregister, cudaHostUnregister);
SAME(hipMalloc, cudaMalloc);
SAME(hipMemGetInfo, cudaMemGetInfo);
SAME(hipMemcpy, cudaMemcpy);
SAME(hipMemcpyAsync, cudaMemcpyAsync);
SAME(hipMemset, cudaMemset);
SAME(hipMemsetAsync, cudaMemsetAsync);
SAME(hipSetDevice, cudaSetDevice);
SAME(hipStreamBeginCapture, cudaStreamBeginCapture);
SAME(hipStreamCreateWithPriority, cudaStreamCreateWithPriority);
SAME(hipStreamDestroy, cudaStreamDestroy);
SAME(hipStreamEndCapture, cudaStreamEndCapture);
SAME(hipStreamSynchronize, cudaStreamSynchronize);
SAME(hipStreamWaitEvent, cudaStreamWaitEvent);

hipError_t hipGetDeviceProperties(hipDeviceProp_t *properties, int number) {
  const char *architecture = getenv("STANDIN_GFX");
  (void)number;
  *properties = (hipDeviceProp_t){.name = "stand-in", .multiProcessorCount = 4};
  snprintf(properties->gcnArchName, sizeof properties->gcnArchName, "%s",
           architecture != NULL ? architecture : "gfx90a:sramecc+:xnack-");
  return hipSuccess;
}
