#include "tests/cuda/standin/algorithms.h"

#include "tests/cuda/standin/blas.h"
#include "tests/cuda/standin/core.h"

#include <string.h>

enum { FIRST = 60 };

float matmuls_time;

int algorithms_offered(void) {
  return (int)setting("STANDIN_ALGORITHMS", 3);
}

struct algorithm algorithm_offered(int rank, const void *of) {
  struct algorithm made = {.of = of, .settings = {(uint32_t)(FIRST + rank)}};
  made.settings[CUBLASLT_ALGO_CONFIG_TILE_ID] = (uint32_t)(20 + rank);
  made.settings[CUBLASLT_ALGO_CONFIG_SPLITK_NUM] = 1;
  made.settings[CUBLASLT_ALGO_CONFIG_STAGES_ID] = 3;
  made.settings[CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID] = (uint32_t)(2 * rank);
  return made;
}

struct algorithm algorithm_in(const cublasLtMatmulAlgo_t *from) {
  struct algorithm read;
  memcpy(&read, from->data, sizeof read);
  return read;
}

void algorithm_put(cublasLtMatmulAlgo_t *into, struct algorithm algorithm) {
  memset(into, 0, sizeof *into);
  memcpy(into->data, &algorithm, sizeof algorithm);
}

static int rank_of(const struct algorithm *algorithm) {
  return (int)algorithm->settings[CUBLASLT_ALGO_CONFIG_ID] - FIRST;
}

bool algorithm_is_whole(const struct algorithm *algorithm) {
  int rank = rank_of(algorithm);
  if (rank < 0 || rank >= algorithms_offered()) return false;
  struct algorithm offered = algorithm_offered(rank, NULL);
  return memcmp(offered.settings, algorithm->settings, sizeof offered.settings) == 0;
}

float algorithm_time(const struct algorithm *algorithm) {
  return rank_of(algorithm) == 1 ? 0.001f : 0.002f + 0.001f * (float)rank_of(algorithm);
}

/* ---- Entry points ---- */

size_t cublasLtGetVersion(void) {
  return 120803;
}

cublasStatus_t cublasLtMatmulAlgoInit(cublasLtHandle_t handle, cublasComputeType_t compute, cudaDataType_t scale,
                                      cudaDataType_t a, cudaDataType_t b, cudaDataType_t c, cudaDataType_t d, int id,
                                      cublasLtMatmulAlgo_t *made) {
  const char *name = "cublasLtMatmulAlgoInit";
  (void)compute;
  object_of(handle, LT_HANDLE, name);
  no_capture(name);
  if (scale != CUDA_R_32F || (a != b && !is_fp8(a)) || c != d) fault("%s: types of no matmul", name);
  if (call(name) || id < FIRST || id >= FIRST + algorithms_offered()) return CUBLAS_STATUS_NOT_SUPPORTED;
  algorithm_put(made, (struct algorithm){.settings = {(uint32_t)id}});
  return CUBLAS_STATUS_SUCCESS;
}

static size_t size_of(cublasLtMatmulAlgoConfigAttributes_t attribute) {
  bool half = attribute == CUBLASLT_ALGO_CONFIG_INNER_SHAPE_ID || attribute == CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID;
  return half ? sizeof(uint16_t) : sizeof(uint32_t);
}

cublasStatus_t cublasLtMatmulAlgoConfigSetAttribute(cublasLtMatmulAlgo_t *into,
                                                    cublasLtMatmulAlgoConfigAttributes_t attribute, const void *value,
                                                    size_t size) {
  struct algorithm algorithm = algorithm_in(into);
  if (attribute == CUBLASLT_ALGO_CONFIG_ID || (int)attribute >= SETTINGS || size != size_of(attribute))
    fault("cublasLtMatmulAlgoConfigSetAttribute: the attribute %d of %zu bytes", (int)attribute, size);
  algorithm.settings[attribute] = 0;
  memcpy(&algorithm.settings[attribute], value, size);
  algorithm_put(into, algorithm);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoConfigGetAttribute(const cublasLtMatmulAlgo_t *from,
                                                    cublasLtMatmulAlgoConfigAttributes_t attribute, void *value,
                                                    size_t size, size_t *written) {
  const struct algorithm algorithm = algorithm_in(from);
  if ((int)attribute >= SETTINGS || size != size_of(attribute))
    fault("cublasLtMatmulAlgoConfigGetAttribute: the attribute %d of %zu bytes", (int)attribute, size);
  memcpy(value, &algorithm.settings[attribute], size);
  *written = size;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoCheck(cublasLtHandle_t handle, cublasLtMatmulDesc_t what, cublasLtMatrixLayout_t a,
                                       cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                       const cublasLtMatmulAlgo_t *algorithm, cublasLtMatmulHeuristicResult_t *result) {
  const char *name = "cublasLtMatmulAlgoCheck";
  const cublasLtMatrixLayout_t layouts[] = {a, b, c, d};
  const struct algorithm current = algorithm_in(algorithm);
  object_of(handle, LT_HANDLE, name);
  object_of(what, LT_DESC, name);
  for (int i = 0; i < 4; i++) object_of(layouts[i], LT_LAYOUT, name);
  if (call(name) || !algorithm_is_whole(&current)) return CUBLAS_STATUS_NOT_SUPPORTED;
  memset(result, 0, sizeof *result);
  result->state = CUBLAS_STATUS_SUCCESS;
  return CUBLAS_STATUS_SUCCESS;
}
