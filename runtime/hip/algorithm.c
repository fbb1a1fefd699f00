/* Algorithms of hipBLASLt: those that its heuristic finds. Its names of them are for one process, so none is kept. */
#include "runtime/gpu/algorithm.h"

#include "runtime/gpu/state.h"

#include <stdio.h>

void rt_blas_check(hipblasStatus_t status, const char *call, const char *file, int line) {
  char number[16];
  if (status == HIPBLAS_STATUS_SUCCESS) return;
  snprintf(number, sizeof number, "%d", (int)status);
  struct refusal refusal = {"hipBLASLt", call, file, line, number, "refused"};
  rt_refused(&refusal, NULL);
}

void rt_blas_library(char name[LIBRARY_NAME]) {
  hipblasLtHandle_t handle;
  int version = 0;
  RT_BLAS(hipblasLtCreate(&handle));
  RT_BLAS(hipblasLtGetVersion(handle, &version));
  RT_BLAS(hipblasLtDestroy(handle));
  snprintf(name, LIBRARY_NAME, "hipBLASLt %d.%d.%d", version / 100000, version / 100 % 1000, version % 100);
}

hipDataType rt_blas_type(int64_t element) {
  static const hipDataType types[] = {[ACCEL_F32] = HIP_R_32F, [ACCEL_BF16] = (hipDataType)14, [ACCEL_F16] = HIP_R_16F};
  return types[element];
}

bool rt_blas_has_fp8(void) {
  return false;
}

hipDataType rt_blas_factor(int64_t element, bool second) {
  (void)second;
  return rt_blas_type(element);
}

int rt_algorithms(hipblasLtHandle_t handle, const struct accel_gpu_algorithm *product,
                  hipblasLtMatmulHeuristicResult_t *found, int most) {
  const struct accel_gpu_plan *plan = &rt_cuda_device()->plan;
  hipblasLtMatmulPreference_t wish;
  int count = 0, good = 0;
  RT_BLAS(hipblasLtMatmulPreferenceCreate(&wish));
  RT_BLAS(hipblasLtMatmulPreferenceSetAttribute(wish, HIPBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &plan->workspace_bytes,
                                                sizeof plan->workspace_bytes));
  hipblasStatus_t status = hipblasLtMatmulAlgoGetHeuristic(handle, product->what, product->b, product->a, product->y,
                                                           product->y, wish, most, found, &count);
  RT_BLAS(hipblasLtMatmulPreferenceDestroy(wish));
  for (int i = 0; i < count && status == HIPBLAS_STATUS_SUCCESS; i++)
    if (found[i].state == HIPBLAS_STATUS_SUCCESS) found[good++] = found[i];
  return good;
}

void rt_algorithm_name(const hipblasLtMatmulAlgo_t *algorithm, char name[ALGORITHM_NAME]) {
  (void)algorithm;
  name[0] = '\0';
}

bool rt_algorithm_of(hipblasLtHandle_t handle, const char *name, struct accel_gpu_algorithm *product) {
  (void)handle, (void)name, (void)product;
  return false;
}
