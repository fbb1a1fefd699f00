/* Vendor: what the maker of a GPU decides on, for the files that are the same for all of them. */
#ifndef RUNTIME_GPU_VENDOR_H
#define RUNTIME_GPU_VENDOR_H

#include "runtime/base/problem.h"

#include <cuda_runtime_api.h>

enum { ARCHITECTURE_NAME = 64 };

struct gpu_vendor {
  const char *library; /* "CUDA" */
  const char *blas;    /* its library of matmuls: "cuBLASLt" */
  const char *visible; /* the variable that chooses devices: "CUDA_VISIBLE_DEVICES" */
  const char *lister;  /* the command that lists devices and who uses them: "nvidia-smi" */
  const char *examine; /* what to look at when the library does not start: "nvidia-smi works on this machine" */
  const char *article; /* before the name of an architecture: "an" */
  /* Says what is wrong with the driver, `error` being the library's; false without a word: nothing that it knows of. */
  bool (*explain_driver)(cudaError_t error, struct problem *problem);
  /* Whether code for a target of the plan runs on a device. */
  bool (*runs_on)(const char *target, const struct cudaDeviceProp *gpu);
  /* A device's architecture, as a target names it: "sm_90". */
  void (*architecture)(const struct cudaDeviceProp *gpu, char name[ARCHITECTURE_NAME]);
};

/* The one that the runtime is compiled for. */
extern const struct gpu_vendor rt_gpu_vendor;

#endif
