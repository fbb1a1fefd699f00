/* CUPTI's records of kernels, copies and fills, as the version at hand gives them. For files that have asked whether
 * there is a <cupti.h>. */
#ifndef RUNTIME_CUDA_RECORDS_H
#define RUNTIME_CUDA_RECORDS_H

#include <cupti.h>

#if CUPTI_API_VERSION >= 130000
typedef CUpti_ActivityKernel10 cupti_kernel;
#else
typedef CUpti_ActivityKernel9 cupti_kernel;
#endif
typedef CUpti_ActivityMemcpy6 cupti_copy;
typedef CUpti_ActivityMemset4 cupti_fill;

#endif
