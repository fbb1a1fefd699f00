/* cuBLASLt's names for hipBLASLt's interface, for the part of the runtime that CUDA and HIP share. hipBLASLt's own
 * header is C++: what products take of it is declared here as its "API Reference" (ROCm documentation) has it. */
#ifndef RUNTIME_HIP_NAMES_CUBLASLT_H
#define RUNTIME_HIP_NAMES_CUBLASLT_H

#include "cuda_runtime_api.h"

#include <stdint.h>

typedef void *hipblasLtHandle_t;
typedef struct hipblasLtMatmulDesc *hipblasLtMatmulDesc_t;
typedef struct hipblasLtMatrixLayout *hipblasLtMatrixLayout_t;
typedef struct hipblasLtMatmulPreference *hipblasLtMatmulPreference_t;

typedef enum { HIPBLAS_STATUS_SUCCESS = 0 } hipblasStatus_t;
typedef enum { HIPBLAS_OP_N = 111, HIPBLAS_OP_T = 112 } hipblasOperation_t;
typedef enum { HIPBLAS_COMPUTE_32F = 2, HIPBLAS_COMPUTE_32F_FAST_TF32 = 6 } hipblasComputeType_t;

typedef enum {
  HIPBLASLT_EPILOGUE_DEFAULT = 1,
  HIPBLASLT_EPILOGUE_BIAS = 4,
  HIPBLASLT_EPILOGUE_GELU_AUX = 160,
  HIPBLASLT_EPILOGUE_GELU_AUX_BIAS = 164,
  HIPBLASLT_EPILOGUE_DGELU = 192,
  HIPBLASLT_EPILOGUE_DGELU_BGRAD = 208,
  HIPBLASLT_EPILOGUE_BGRADA = 256,
  HIPBLASLT_EPILOGUE_BGRADB = 512
} hipblasLtEpilogue_t;

typedef enum {
  HIPBLASLT_MATMUL_DESC_TRANSA = 0,
  HIPBLASLT_MATMUL_DESC_TRANSB = 1,
  HIPBLASLT_MATMUL_DESC_EPILOGUE = 2,
  HIPBLASLT_MATMUL_DESC_BIAS_POINTER = 3,
  HIPBLASLT_MATMUL_DESC_A_SCALE_POINTER = 5,
  HIPBLASLT_MATMUL_DESC_B_SCALE_POINTER = 6,
  HIPBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER = 10,
  HIPBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD = 11,
  HIPBLASLT_MATMUL_DESC_EPILOGUE_AUX_BATCH_STRIDE = 12
} hipblasLtMatmulDescAttributes_t;

typedef enum {
  HIPBLASLT_MATRIX_LAYOUT_BATCH_COUNT = 0,
  HIPBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET = 1
} hipblasLtMatrixLayoutAttribute_t;

typedef enum { HIPBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES = 1 } hipblasLtMatmulPreferenceAttributes_t;

typedef struct {
  uint8_t data[16];
  size_t max_workspace_bytes;
} hipblasLtMatmulAlgo_t;

typedef struct {
  hipblasLtMatmulAlgo_t algo;
  size_t workspaceSize;
  hipblasStatus_t state;
  float wavesCount;
  int reserved[4];
} hipblasLtMatmulHeuristicResult_t;

hipblasStatus_t hipblasLtCreate(hipblasLtHandle_t *handle);
hipblasStatus_t hipblasLtDestroy(hipblasLtHandle_t handle);
hipblasStatus_t hipblasLtGetVersion(hipblasLtHandle_t handle, int *version);
hipblasStatus_t hipblasLtMatrixLayoutCreate(hipblasLtMatrixLayout_t *layout, hipDataType type, uint64_t rows,
                                            uint64_t columns, int64_t stride);
hipblasStatus_t hipblasLtMatrixLayoutDestroy(hipblasLtMatrixLayout_t layout);
hipblasStatus_t hipblasLtMatrixLayoutSetAttribute(hipblasLtMatrixLayout_t layout,
                                                  hipblasLtMatrixLayoutAttribute_t attribute, const void *value,
                                                  size_t size);
hipblasStatus_t hipblasLtMatmulDescCreate(hipblasLtMatmulDesc_t *description, hipblasComputeType_t compute,
                                          hipDataType scale);
hipblasStatus_t hipblasLtMatmulDescDestroy(hipblasLtMatmulDesc_t description);
hipblasStatus_t hipblasLtMatmulDescSetAttribute(hipblasLtMatmulDesc_t description,
                                                hipblasLtMatmulDescAttributes_t attribute, const void *value,
                                                size_t size);
hipblasStatus_t hipblasLtMatmulPreferenceCreate(hipblasLtMatmulPreference_t *preference);
hipblasStatus_t hipblasLtMatmulPreferenceDestroy(hipblasLtMatmulPreference_t preference);
hipblasStatus_t hipblasLtMatmulPreferenceSetAttribute(hipblasLtMatmulPreference_t preference,
                                                      hipblasLtMatmulPreferenceAttributes_t attribute,
                                                      const void *value, size_t size);
hipblasStatus_t hipblasLtMatmulAlgoGetHeuristic(hipblasLtHandle_t handle, hipblasLtMatmulDesc_t description,
                                                hipblasLtMatrixLayout_t a, hipblasLtMatrixLayout_t b,
                                                hipblasLtMatrixLayout_t c, hipblasLtMatrixLayout_t d,
                                                hipblasLtMatmulPreference_t preference, int wanted,
                                                hipblasLtMatmulHeuristicResult_t found[], int *count);
hipblasStatus_t hipblasLtMatmul(hipblasLtHandle_t handle, hipblasLtMatmulDesc_t description, const void *alpha,
                                const void *a, hipblasLtMatrixLayout_t a_layout, const void *b,
                                hipblasLtMatrixLayout_t b_layout, const void *beta, const void *c,
                                hipblasLtMatrixLayout_t c_layout, void *d, hipblasLtMatrixLayout_t d_layout,
                                const hipblasLtMatmulAlgo_t *algorithm, void *workspace, size_t workspace_bytes,
                                hipStream_t stream);

#define CUDA_R_32F HIP_R_32F
#define CUBLAS_STATUS_SUCCESS HIPBLAS_STATUS_SUCCESS
#define CUBLAS_OP_N HIPBLAS_OP_N
#define CUBLAS_OP_T HIPBLAS_OP_T
#define CUBLAS_COMPUTE_32F HIPBLAS_COMPUTE_32F
#define CUBLAS_COMPUTE_32F_FAST_TF32 HIPBLAS_COMPUTE_32F_FAST_TF32
#define CUBLASLT_EPILOGUE_BGRADA HIPBLASLT_EPILOGUE_BGRADA
#define CUBLASLT_EPILOGUE_BGRADB HIPBLASLT_EPILOGUE_BGRADB
#define CUBLASLT_EPILOGUE_BIAS HIPBLASLT_EPILOGUE_BIAS
#define CUBLASLT_EPILOGUE_DEFAULT HIPBLASLT_EPILOGUE_DEFAULT
#define CUBLASLT_EPILOGUE_DGELU HIPBLASLT_EPILOGUE_DGELU
#define CUBLASLT_EPILOGUE_DGELU_BGRAD HIPBLASLT_EPILOGUE_DGELU_BGRAD
#define CUBLASLT_EPILOGUE_GELU_AUX HIPBLASLT_EPILOGUE_GELU_AUX
#define CUBLASLT_EPILOGUE_GELU_AUX_BIAS HIPBLASLT_EPILOGUE_GELU_AUX_BIAS
#define CUBLASLT_MATMUL_DESC_A_SCALE_POINTER HIPBLASLT_MATMUL_DESC_A_SCALE_POINTER
#define CUBLASLT_MATMUL_DESC_B_SCALE_POINTER HIPBLASLT_MATMUL_DESC_B_SCALE_POINTER
#define CUBLASLT_MATMUL_DESC_BIAS_POINTER HIPBLASLT_MATMUL_DESC_BIAS_POINTER
#define CUBLASLT_MATMUL_DESC_EPILOGUE HIPBLASLT_MATMUL_DESC_EPILOGUE
#define CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_BATCH_STRIDE HIPBLASLT_MATMUL_DESC_EPILOGUE_AUX_BATCH_STRIDE
#define CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD HIPBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD
#define CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER HIPBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER
#define CUBLASLT_MATMUL_DESC_TRANSA HIPBLASLT_MATMUL_DESC_TRANSA
#define CUBLASLT_MATMUL_DESC_TRANSB HIPBLASLT_MATMUL_DESC_TRANSB
#define CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT HIPBLASLT_MATRIX_LAYOUT_BATCH_COUNT
#define CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET HIPBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET
#define cublasComputeType_t hipblasComputeType_t
#define cublasLtCreate hipblasLtCreate
#define cublasLtDestroy hipblasLtDestroy
#define cublasLtEpilogue_t hipblasLtEpilogue_t
#define cublasLtHandle_t hipblasLtHandle_t
#define cublasLtMatmul hipblasLtMatmul
#define cublasLtMatmulAlgo_t hipblasLtMatmulAlgo_t
#define cublasLtMatmulDescAttributes_t hipblasLtMatmulDescAttributes_t
#define cublasLtMatmulDescCreate hipblasLtMatmulDescCreate
#define cublasLtMatmulDescDestroy hipblasLtMatmulDescDestroy
#define cublasLtMatmulDescSetAttribute hipblasLtMatmulDescSetAttribute
#define cublasLtMatmulDesc_t hipblasLtMatmulDesc_t
#define cublasLtMatmulHeuristicResult_t hipblasLtMatmulHeuristicResult_t
#define cublasLtMatrixLayoutCreate hipblasLtMatrixLayoutCreate
#define cublasLtMatrixLayoutDestroy hipblasLtMatrixLayoutDestroy
#define cublasLtMatrixLayoutSetAttribute hipblasLtMatrixLayoutSetAttribute
#define cublasLtMatrixLayout_t hipblasLtMatrixLayout_t
#define cublasOperation_t hipblasOperation_t
#define cublasStatus_t hipblasStatus_t

/* What it has not: no plan for HIP uses these (gen/program/target.c). */
#define CUBLASLT_EPILOGUE_RELU_AUX ((hipblasLtEpilogue_t)0)
#define CUBLASLT_EPILOGUE_RELU_AUX_BIAS ((hipblasLtEpilogue_t)0)
#define CUBLASLT_EPILOGUE_DRELU ((hipblasLtEpilogue_t)0)
#define CUBLASLT_EPILOGUE_DRELU_BGRAD ((hipblasLtEpilogue_t)0)

#endif
