/* Algorithms of cuBLASLt: those that its heuristic finds, and one by its configuration. */
#include "runtime/gpu/algorithm.h"

#include "runtime/gpu/state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void rt_blas_check(cublasStatus_t status, const char *call, const char *file, int line) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  struct refusal refusal = {
      "cuBLASLt", call, file, line, cublasLtGetStatusName(status), cublasLtGetStatusString(status)};
  rt_refused(&refusal, NULL);
}

void rt_blas_library(char name[LIBRARY_NAME]) {
  size_t version = cublasLtGetVersion();
  snprintf(name, LIBRARY_NAME, "cuBLASLt %zu.%zu.%zu", version / 10000, version / 100 % 100, version % 100);
}

cudaDataType_t rt_blas_type(int64_t element) {
  static const cudaDataType_t types[] = {
      [ACCEL_F32] = CUDA_R_32F, [ACCEL_BF16] = CUDA_R_16BF, [ACCEL_F16] = CUDA_R_16F};
  return types[element];
}

bool rt_blas_has_fp8(void) {
  enum { ADA = 89 };
  const struct cudaDeviceProp *gpu = &rt_cuda_device()->properties;
  return gpu->major * 10 + gpu->minor >= ADA;
}

cudaDataType_t rt_blas_factor(int64_t element, bool second) {
  if (element < ACCEL_E4M3) return rt_blas_type(element);
  return element == (second ? ACCEL_E4M3_E5M2 : ACCEL_E5M2_E4M3) ? CUDA_R_8F_E5M2 : CUDA_R_8F_E4M3;
}

static cublasLtMatmulPreference_t preference(const struct shape *shape) {
  const struct accel_gpu_plan *plan = &rt_cuda_device()->plan;
  const uint32_t alignment = (uint32_t)shape->alignment, once = CUBLASLT_REDUCTION_SCHEME_NONE;
  cublasLtMatmulPreference_t wish;
  RT_BLAS(cublasLtMatmulPreferenceCreate(&wish));
  RT_BLAS(cublasLtMatmulPreferenceSetAttribute(wish, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &plan->workspace_bytes,
                                               sizeof plan->workspace_bytes));
  if (plan->deterministic)
    RT_BLAS(cublasLtMatmulPreferenceSetAttribute(wish, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &once, sizeof once));
  const cublasLtMatmulPreferenceAttributes_t addresses[] = {
      CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
      CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES};
  for (int i = 0; i < 4; i++)
    RT_BLAS(cublasLtMatmulPreferenceSetAttribute(wish, addresses[i], &alignment, sizeof alignment));
  return wish;
}

int rt_algorithms(cublasLtHandle_t handle, const struct accel_gpu_algorithm *gemm,
                  cublasLtMatmulHeuristicResult_t *found, int most) {
  cublasLtMatmulPreference_t wish = preference(&gemm->shape);
  int count = 0, good = 0;
  cublasStatus_t status =
      cublasLtMatmulAlgoGetHeuristic(handle, gemm->what, gemm->b, gemm->a, gemm->y, gemm->y, wish, most, found, &count);
  RT_BLAS(cublasLtMatmulPreferenceDestroy(wish));
  for (int i = 0; i < count && status == CUBLAS_STATUS_SUCCESS; i++)
    if (found[i].state == CUBLAS_STATUS_SUCCESS) found[good++] = found[i];
  return good;
}

/* ---- By name ---- */

/* What an algorithm is set to, in the order of its name. */
static const struct member {
  const char *word;
  cublasLtMatmulAlgoConfigAttributes_t attribute;
  size_t size;
} members[] = {
    {"algo", CUBLASLT_ALGO_CONFIG_ID, sizeof(int32_t)},
    {"tile", CUBLASLT_ALGO_CONFIG_TILE_ID, sizeof(uint32_t)},
    {"split", CUBLASLT_ALGO_CONFIG_SPLITK_NUM, sizeof(int32_t)},
    {"reduction", CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME, sizeof(uint32_t)},
    {"swizzle", CUBLASLT_ALGO_CONFIG_CTA_SWIZZLING, sizeof(uint32_t)},
    {"custom", CUBLASLT_ALGO_CONFIG_CUSTOM_OPTION, sizeof(uint32_t)},
    {"stages", CUBLASLT_ALGO_CONFIG_STAGES_ID, sizeof(uint32_t)},
    {"inner", CUBLASLT_ALGO_CONFIG_INNER_SHAPE_ID, sizeof(uint16_t)},
    {"cluster", CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID, sizeof(uint16_t)},
};
enum { REDUCTION = 3, MEMBERS = sizeof members / sizeof *members };

void rt_algorithm_name(const cublasLtMatmulAlgo_t *algorithm, char name[ALGORITHM_NAME]) {
  size_t length = 0, written;
  for (int i = 0; i < MEMBERS; i++) {
    uint32_t value = 0;
    uint16_t half = 0;
    void *at = members[i].size == sizeof half ? (void *)&half : (void *)&value;
    RT_BLAS(cublasLtMatmulAlgoConfigGetAttribute(algorithm, members[i].attribute, at, members[i].size, &written));
    int added = snprintf(name + length, ALGORITHM_NAME - length, "%s%s %u", i > 0 ? " " : "", members[i].word,
                         (unsigned)(value + half));
    length += (size_t)added;
  }
}

/* The numbers of a name; false where it is none. */
static bool read_name(const char *name, uint32_t values[MEMBERS]) {
  for (int i = 0; i < MEMBERS; i++) {
    size_t length = strlen(members[i].word);
    char *end;
    if (strncmp(name, members[i].word, length) != 0 || name[length] != ' ') return false;
    unsigned long value = strtoul(name + length + 1, &end, 10);
    if (end == name + length + 1 || value > UINT32_MAX) return false;
    values[i] = (uint32_t)value;
    name = *end == ' ' ? end + 1 : end;
  }
  return *name == '\0';
}

static bool configure(cublasLtMatmulAlgo_t *algorithm, const uint32_t values[MEMBERS]) {
  for (int i = 1; i < MEMBERS; i++) {
    const uint16_t half = (uint16_t)values[i];
    const void *at = members[i].size == sizeof half ? (const void *)&half : (const void *)&values[i];
    if (cublasLtMatmulAlgoConfigSetAttribute(algorithm, members[i].attribute, at, members[i].size) !=
        CUBLAS_STATUS_SUCCESS)
      return false;
  }
  return true;
}

bool rt_algorithm_of(cublasLtHandle_t handle, const char *name, struct accel_gpu_algorithm *gemm) {
  const struct accel_gpu_plan *plan = &rt_cuda_device()->plan;
  const cudaDataType_t a = rt_blas_factor(gemm->shape.type, false), b = rt_blas_factor(gemm->shape.type, true);
  const cudaDataType_t result = rt_blas_type(gemm->shape.result);
  cublasComputeType_t compute = gemm->shape.tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
  cublasLtMatmulHeuristicResult_t checked;
  cublasLtMatmulAlgo_t algorithm;
  uint32_t values[MEMBERS];
  if (!read_name(name, values) || (plan->deterministic && values[REDUCTION] != 0)) return false;
  if (cublasLtMatmulAlgoInit(handle, compute, CUDA_R_32F, b, a, result, result, (int)values[0], &algorithm) !=
          CUBLAS_STATUS_SUCCESS ||
      !configure(&algorithm, values))
    return false;
  cublasStatus_t status =
      cublasLtMatmulAlgoCheck(handle, gemm->what, gemm->b, gemm->a, gemm->y, gemm->y, &algorithm, &checked);
  if (status != CUBLAS_STATUS_SUCCESS || checked.workspaceSize > plan->workspace_bytes) return false;
  gemm->algorithm = algorithm;
  return true;
}
