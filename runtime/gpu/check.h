/* Every call of CUDA's libraries passes through a check: one that fails ends all ranks with one message. */
#ifndef RUNTIME_GPU_CHECK_H
#define RUNTIME_GPU_CHECK_H

#include "runtime/base/problem.h"

#include <cuda_runtime_api.h>
#include <stdnoreturn.h>

/* What a library said. */
struct refusal {
  const char *library, *call, *file;
  int line;
  const char *name, *text; /* of the error: "cudaErrorIllegalAddress", "an illegal memory access was encountered" */
};

/* Ends all ranks: where, what was called, what it means; `help` may be NULL. */
noreturn void rt_refused(const struct refusal *refusal, const char *help);

void rt_cuda_check(cudaError_t error, const char *call, const char *file, int line);
#define RT_CUDA(call) rt_cuda_check((call), #call, __FILE__, __LINE__)

#endif
