/* hipBLASLt, as far as products take it (runtime/hip/names/cublasLt.h): cuBLASLt's calls, with its own numbers of
 * attributes, of operations and of types, and an algorithm of another size. */
#include "tests/hip/standin/same.h"

#include <cublasLt.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

SAME(hipblasLtCreate, cublasLtCreate);
SAME(hipblasLtDestroy, cublasLtDestroy);
SAME(hipblasLtMatmulDescDestroy, cublasLtMatmulDescDestroy);
SAME(hipblasLtMatmulPreferenceCreate, cublasLtMatmulPreferenceCreate);
SAME(hipblasLtMatmulPreferenceDestroy, cublasLtMatmulPreferenceDestroy);
SAME(hipblasLtMatmulPreferenceSetAttribute, cublasLtMatmulPreferenceSetAttribute);
SAME(hipblasLtMatrixLayoutCreate, cublasLtMatrixLayoutCreate);
SAME(hipblasLtMatrixLayoutDestroy, cublasLtMatrixLayoutDestroy);

/* An algorithm, and what the heuristic says of one, as cuBLASLt has them. */
struct algorithm {
  uint64_t data[8];
};
struct found {
  struct algorithm algorithm;
  size_t workspace;
  int state;
  float waves;
  int reserved[4];
};

int create_desc(hipblasLtMatmulDesc_t *made, int compute, int scale) __asm__("cublasLtMatmulDescCreate");
int set_desc(hipblasLtMatmulDesc_t what, int attribute, const void *value,
             size_t size) __asm__("cublasLtMatmulDescSetAttribute");
int set_layout(hipblasLtMatrixLayout_t matrix, int attribute, const void *value,
               size_t size) __asm__("cublasLtMatrixLayoutSetAttribute");
int find(hipblasLtHandle_t handle, hipblasLtMatmulDesc_t what, hipblasLtMatrixLayout_t a, hipblasLtMatrixLayout_t b,
         hipblasLtMatrixLayout_t c, hipblasLtMatrixLayout_t d, hipblasLtMatmulPreference_t wish, int wanted,
         struct found *found, int *count) __asm__("cublasLtMatmulAlgoGetHeuristic");
int multiply(hipblasLtHandle_t handle, hipblasLtMatmulDesc_t what, const void *alpha, const void *a,
             hipblasLtMatrixLayout_t a_layout, const void *b, hipblasLtMatrixLayout_t b_layout, const void *beta,
             const void *c, hipblasLtMatrixLayout_t c_layout, void *d, hipblasLtMatrixLayout_t d_layout,
             const struct algorithm *algorithm, void *workspace, size_t workspace_bytes,
             hipStream_t stream) __asm__("cublasLtMatmul");

hipblasStatus_t hipblasLtGetVersion(hipblasLtHandle_t handle, int *version) {
  (void)handle;
  *version = 1000; /* 0.10.0 */
  return HIPBLAS_STATUS_SUCCESS;
}

hipblasStatus_t hipblasLtMatmulDescCreate(hipblasLtMatmulDesc_t *made, hipblasComputeType_t compute,
                                          hipDataType scale) {
  enum { COMPUTE_32F = 68 };
  if (compute != HIPBLAS_COMPUTE_32F || scale != HIP_R_32F) abort(); /* all else is refused for HIP */
  return (hipblasStatus_t)create_desc(made, COMPUTE_32F, (int)scale);
}

hipblasStatus_t hipblasLtMatmulDescSetAttribute(hipblasLtMatmulDesc_t what, hipblasLtMatmulDescAttributes_t attribute,
                                                const void *value, size_t size) {
  static const int numbers[] = {[HIPBLASLT_MATMUL_DESC_TRANSA] = 3,
                                [HIPBLASLT_MATMUL_DESC_TRANSB] = 4,
                                [HIPBLASLT_MATMUL_DESC_EPILOGUE] = 7,
                                [HIPBLASLT_MATMUL_DESC_BIAS_POINTER] = 8,
                                [HIPBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER] = 11,
                                [HIPBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD] = 12,
                                [HIPBLASLT_MATMUL_DESC_EPILOGUE_AUX_BATCH_STRIDE] = 13};
  bool operation = attribute == HIPBLASLT_MATMUL_DESC_TRANSA || attribute == HIPBLASLT_MATMUL_DESC_TRANSB;
  int transposed = operation && *(const hipblasOperation_t *)value == HIPBLAS_OP_T;
  return (hipblasStatus_t)set_desc(what, numbers[attribute], operation ? &transposed : value, size);
}

hipblasStatus_t hipblasLtMatrixLayoutSetAttribute(hipblasLtMatrixLayout_t matrix,
                                                  hipblasLtMatrixLayoutAttribute_t attribute, const void *value,
                                                  size_t size) {
  return (hipblasStatus_t)set_layout(matrix, attribute == HIPBLASLT_MATRIX_LAYOUT_BATCH_COUNT ? 5 : 6, value, size);
}

/* hipBLASLt's algorithm has the address of cuBLASLt's, which are kept as long as the process: they have no end. */
hipblasStatus_t hipblasLtMatmulAlgoGetHeuristic(hipblasLtHandle_t handle, hipblasLtMatmulDesc_t what,
                                                hipblasLtMatrixLayout_t a, hipblasLtMatrixLayout_t b,
                                                hipblasLtMatrixLayout_t c, hipblasLtMatrixLayout_t d,
                                                hipblasLtMatmulPreference_t preference, int wanted,
                                                hipblasLtMatmulHeuristicResult_t results[], int *count) {
  struct found *found = calloc((size_t)wanted, sizeof *found);
  if (found == NULL) abort();
  int status = find(handle, what, a, b, c, d, preference, wanted, found, count);
  for (int i = 0; status == 0 && i < *count; i++) {
    const struct algorithm *algorithm = &found[i].algorithm;
    results[i] = (hipblasLtMatmulHeuristicResult_t){.workspaceSize = found[i].workspace};
    memcpy(results[i].algo.data, &algorithm, sizeof algorithm);
  }
  return (hipblasStatus_t)status;
}

hipblasStatus_t hipblasLtMatmul(hipblasLtHandle_t handle, hipblasLtMatmulDesc_t what, const void *alpha, const void *a,
                                hipblasLtMatrixLayout_t a_layout, const void *b, hipblasLtMatrixLayout_t b_layout,
                                const void *beta, const void *c, hipblasLtMatrixLayout_t c_layout, void *d,
                                hipblasLtMatrixLayout_t d_layout, const hipblasLtMatmulAlgo_t *chosen, void *workspace,
                                size_t workspace_bytes, hipStream_t stream) {
  const struct algorithm *algorithm;
  memcpy(&algorithm, chosen->data, sizeof algorithm);
  return (hipblasStatus_t)multiply(handle, what, alpha, a, a_layout, b, b_layout, beta, c, c_layout, d, d_layout,
                                   algorithm, workspace, workspace_bytes, stream);
}
