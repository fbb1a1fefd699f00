/* What the files about GEMMs share: a GEMM as cuBLASLt gets it, and which of its algorithms computes it. */
#ifndef RUNTIME_GPU_ALGORITHM_H
#define RUNTIME_GPU_ALGORITHM_H

#include "include/accel/gpu/gemm.h"

#include <cublasLt.h>

/* What decides over an algorithm; GEMMs that are alike in it share one. */
struct shape {
  int64_t type, result, tf32, accumulate, epilogue, rows, columns, depth, y_row, a_row, a_column, b_row, b_column;
  int64_t alignment, batch, y_step, a_step, b_step;
};

struct accel_gpu_algorithm {
  struct shape shape;
  enum accel_epilogue fused;  /* what the library does of the shape's: all of it, or all but its sums */
  struct accel_gpu_gemm sums; /* which are then a GEMM of ones; no algorithm: there are none */
  void *ones;                 /* its factor, on the device */
  const char *wanted;         /* as accel_gpu_gemm.algorithm_name */
  cublasLtMatmulDesc_t what;
  cublasLtMatrixLayout_t a, b, y;
  cublasLtMatmulAlgo_t algorithm;
  struct accel_gpu_algorithm *next;
};

void rt_blas_check(cublasStatus_t status, const char *call, const char *file, int line);
#define RT_BLAS(call) rt_blas_check((call), #call, __FILE__, __LINE__)

/* The library's name with its version: "cuBLASLt 13.1.0". */
enum { LIBRARY_NAME = 64 };
void rt_blas_library(char name[LIBRARY_NAME]);

/* An enum accel_element as the library names it. */
cudaDataType_t rt_blas_type(int64_t element);

/* Whether the device multiplies codes of 8 bits. */
bool rt_blas_has_fp8(void);

/* The type of a GEMM's first factor, or of the second one. */
cudaDataType_t rt_blas_factor(int64_t element, bool second);

/* The library's algorithms for a GEMM, the best one by its own judgement first: at most `most`, as many as it has.
 * They fit the plan's workspace and, where it is deterministic, write each element once. */
int rt_algorithms(cublasLtHandle_t handle, const struct accel_gpu_algorithm *gemm,
                  cublasLtMatmulHeuristicResult_t *found, int most);

/* An algorithm's name: its configuration, "algo 21 tile 20 split 1 ...", as one version of the library knows it. */
enum { ALGORITHM_NAME = 160 };
void rt_algorithm_name(const cublasLtMatmulAlgo_t *algorithm, char name[ALGORITHM_NAME]);

/* The way back. False where this library, on this device, has no such algorithm for the GEMM within the plan. */
bool rt_algorithm_of(cublasLtHandle_t handle, const char *name, struct accel_gpu_algorithm *gemm);

/* A GEMM with its operands. */
struct operands {
  void *y;
  const void *a, *b;
};

/* Times the library's algorithms for a GEMM where it runs, once, and the results stand as before. */
void rt_measure_gemm(cublasLtHandle_t handle, const struct accel_gpu_gemm *gemm, const struct operands *operands,
                     accel_stream stream);

/* Writes what was measured into the file that ACCEL_MEASURE names, and forgets it. */
void rt_measured_write(void);

#endif
