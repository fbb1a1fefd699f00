/* cuBLASLt: matmuls as its documentation states them, column by column, added up in double. */
#include "tests/cuda/standin/blas.h"
#include "tests/cuda/standin/core.h"

#include <cublasLt.h>
#include <stdlib.h>
#include <string.h>

struct preference {
  size_t workspace;
  uint32_t reduction, alignment;
};

const char *cublasLtGetStatusName(cublasStatus_t status) {
  return status == CUBLAS_STATUS_NOT_SUPPORTED ? "CUBLAS_STATUS_NOT_SUPPORTED" : "a status of cuBLAS";
}

const char *cublasLtGetStatusString(cublasStatus_t status) {
  return status == CUBLAS_STATUS_SUCCESS ? "success" : "the functionality requested is not supported";
}

/* ---- Objects ---- */

cublasStatus_t cublasLtCreate(cublasLtHandle_t *handle) {
  if (call("cublasLtCreate")) return CUBLAS_STATUS_NOT_INITIALIZED;
  no_capture("cublasLtCreate");
  *handle = object_new(LT_HANDLE, 1);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  object_end(handle, LT_HANDLE, "cublasLtDestroy");
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *made, cublasComputeType_t compute, cudaDataType_t scale) {
  struct description *what = object_new(LT_DESC, sizeof *what);
  if (scale != CUDA_R_32F) fault("cublasLtMatmulDescCreate: factors that are not float32");
  *what = (struct description){.compute = compute,
                               .transposed_a = CUBLAS_OP_N,
                               .transposed_b = CUBLAS_OP_N,
                               .epilogue = CUBLASLT_EPILOGUE_DEFAULT};
  *made = (cublasLtMatmulDesc_t)what;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t what) {
  object_end(what, LT_DESC, "cublasLtMatmulDescDestroy");
  return CUBLAS_STATUS_SUCCESS;
}

static void take(void *into, size_t size, const void *value, size_t given, const char *what) {
  if (size != given) fault("%s: a value of %zu bytes where %zu are read", what, given, size);
  memcpy(into, value, size);
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t made, cublasLtMatmulDescAttributes_t attribute,
                                              const void *value, size_t size) {
  const char *name = "cublasLtMatmulDescSetAttribute";
  struct description *what = object_of(made, LT_DESC, name);
  switch (attribute) {
  case CUBLASLT_MATMUL_DESC_TRANSA:
    take(&what->transposed_a, sizeof what->transposed_a, value, size, name);
    break;
  case CUBLASLT_MATMUL_DESC_TRANSB:
    take(&what->transposed_b, sizeof what->transposed_b, value, size, name);
    break;
  case CUBLASLT_MATMUL_DESC_EPILOGUE:
    take(&what->epilogue, sizeof what->epilogue, value, size, name);
    break;
  case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
    take(&what->bias, sizeof what->bias, value, size, name);
    break;
  case CUBLASLT_MATMUL_DESC_A_SCALE_POINTER:
    take(&what->a_scale, sizeof what->a_scale, value, size, name);
    break;
  case CUBLASLT_MATMUL_DESC_B_SCALE_POINTER:
    take(&what->b_scale, sizeof what->b_scale, value, size, name);
    break;
  case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER:
    take(&what->aux, sizeof what->aux, value, size, name);
    break;
  case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD:
    take(&what->aux_row, sizeof what->aux_row, value, size, name);
    break;
  case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_BATCH_STRIDE:
    take(&what->aux_step, sizeof what->aux_step, value, size, name);
    break;
  default:
    fault("%s: the attribute %d", name, (int)attribute);
  }
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *made, cudaDataType type, uint64_t rows,
                                          uint64_t columns, int64_t ld) {
  struct matrix *matrix = object_new(LT_LAYOUT, sizeof *matrix);
  if (ld < (int64_t)rows)
    fault("cublasLtMatrixLayoutCreate: columns of %lld in steps of %lld", (long long)rows, (long long)ld);
  *matrix = (struct matrix){type, (int64_t)rows, (int64_t)columns, ld, 0, 1};
  *made = (cublasLtMatrixLayout_t)matrix;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t made) {
  object_end(made, LT_LAYOUT, "cublasLtMatrixLayoutDestroy");
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t made, cublasLtMatrixLayoutAttribute_t attribute,
                                                const void *value, size_t size) {
  const char *name = "cublasLtMatrixLayoutSetAttribute";
  struct matrix *matrix = object_of(made, LT_LAYOUT, name);
  switch (attribute) {
  case CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT:
    take(&matrix->batch, sizeof matrix->batch, value, size, name);
    break;
  case CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET:
    take(&matrix->step, sizeof matrix->step, value, size, name);
    break;
  default:
    fault("%s: the attribute %d", name, (int)attribute);
  }
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *made) {
  *made = object_new(LT_PREFERENCE, sizeof(struct preference));
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t made) {
  object_end(made, LT_PREFERENCE, "cublasLtMatmulPreferenceDestroy");
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t made,
                                                    cublasLtMatmulPreferenceAttributes_t attribute, const void *value,
                                                    size_t size) {
  const char *name = "cublasLtMatmulPreferenceSetAttribute";
  struct preference *wish = object_of(made, LT_PREFERENCE, name);
  if (attribute == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES)
    take(&wish->workspace, sizeof wish->workspace, value, size, name);
  else if (attribute == CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK)
    take(&wish->reduction, sizeof wish->reduction, value, size, name);
  else
    take(&wish->alignment, sizeof wish->alignment, value, size, name);
  return CUBLAS_STATUS_SUCCESS;
}

/* ---- What is requested ---- */

/* What the documentation of cublasLtMatmul asks of factors of 8 bits on compute capability 8.9 and 9.0: A transposed
 * and B not, all extents in whole 16 bytes, one factor at least in E4M3, sums in float32. */
static void require_fp8(const struct choice *of, const char *name) {
  bool straight = of->what.transposed_a == CUBLAS_OP_T && of->what.transposed_b == CUBLAS_OP_N;
  if (!is_fp8(of->b.type) || !straight) fault("%s: factors of 8 bits that are not both along their depth", name);
  if (of->a.type == CUDA_R_8F_E5M2 && of->b.type == CUDA_R_8F_E5M2) fault("%s: two factors of E5M2", name);
  if (of->a.ld % 16 != 0 || of->b.ld % 16 != 0 || of->a.rows % 16 != 0 ||
      of->d.ld * (int64_t)width(of->d.type) % 16 != 0)
    fault("%s: extents of 8 bits that are no multiples of 16 bytes", name);
  if (is_fp8(of->d.type) || of->what.compute != CUBLAS_COMPUTE_32F)
    fault("%s: a result of 8 bits, or other sums", name);
  if (of->what.epilogue != CUBLASLT_EPILOGUE_DEFAULT) fault("%s: an epilogue of factors of 8 bits", name);
}

/* Addresses are no part of what an algorithm is for. */
static struct choice choice_of(cublasLtMatmulDesc_t what, cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                               cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d, const char *name) {
  struct choice of;
  memset(&of, 0, sizeof of);
  of.what = *(struct description *)object_of(what, LT_DESC, name);
  of.a = *(struct matrix *)object_of(a, LT_LAYOUT, name);
  of.b = *(struct matrix *)object_of(b, LT_LAYOUT, name);
  of.d = *(struct matrix *)object_of(d, LT_LAYOUT, name);
  if (c != d) fault("%s: C and D of different layouts", name);
  bool ta = of.what.transposed_a != CUBLAS_OP_N, tb = of.what.transposed_b != CUBLAS_OP_N;
  int64_t m = ta ? of.a.columns : of.a.rows, k = depth_of(&of);
  int64_t k_b = tb ? of.b.columns : of.b.rows, n = tb ? of.b.rows : of.b.columns;
  if (m != of.d.rows || n != of.d.columns || k != k_b)
    fault("%s: %lld x %lld times %lld x %lld is no %lld x %lld", name, (long long)m, (long long)k, (long long)k_b,
          (long long)n, (long long)of.d.rows, (long long)of.d.columns);
  if (of.a.batch != of.b.batch || of.a.batch != of.d.batch) fault("%s: batches that differ", name);
  if (is_fp8(of.a.type))
    require_fp8(&of, name);
  else if (of.a.type != of.b.type)
    fault("%s: factors of two types", name);
  if (of.a.type == CUDA_R_32F && of.d.type != CUDA_R_32F) fault("%s: a result of 16 bits from float32", name);
  int64_t multiple = masks(&of.what) ? 128 : 8;
  if (uses(&of.what, AUX_FLAG) &&
      (of.what.aux == NULL || of.what.aux_row % multiple != 0 || of.what.aux_row < of.d.rows))
    fault("%s: the auxiliary matrix's address, or its rows, which must be a multiple of %d", name, (int)multiple);
  if (uses(&of.what, BIAS_FLAG | SUM_D_FLAG | SUM_A_FLAG | SUM_B_FLAG) && of.what.bias == NULL)
    fault("%s: no address of the bias", name);
  return of;
}

static void forget_addresses(struct description *what) {
  what->bias = what->aux = NULL;
  what->a_scale = what->b_scale = NULL;
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t what,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int wanted,
                                              cublasLtMatmulHeuristicResult_t *results, int *found) {
  const char *name = "cublasLtMatmulAlgoGetHeuristic";
  const struct preference *wish = object_of(preference, LT_PREFERENCE, name);
  object_of(handle, LT_HANDLE, name);
  no_capture(name);
  *found = 0;
  if (call(name)) return CUBLAS_STATUS_NOT_SUPPORTED;
  struct choice of = choice_of(what, a, b, c, d, name);
  if (uses(&of.what, SUM_D_FLAG | SUM_A_FLAG | SUM_B_FLAG) && !setting("STANDIN_SUMS", 1))
    return CUBLAS_STATUS_NOT_SUPPORTED;
  forget_addresses(&of.what);
  of.workspace = wish->workspace;
  of.alignment = wish->alignment;
  struct choice *kept = malloc(sizeof *kept); /* as long as the process: an algorithm has no end */
  if (kept == NULL || wanted < 1) fault("no memory, or nothing requested");
  *kept = of;
  *found = wanted < algorithms_offered() ? wanted : algorithms_offered();
  for (int i = 0; i < *found; i++) {
    results[i] = (cublasLtMatmulHeuristicResult_t){.workspaceSize = wish->workspace, .state = CUBLAS_STATUS_SUCCESS};
    algorithm_put(&results[i].algo, algorithm_offered(i, kept));
  }
  return CUBLAS_STATUS_SUCCESS;
}

/* ---- The matmul ---- */

/* A fault where the algorithm is for another matmul; one that was made by its number is for any. */
static void require_chosen(const struct matmul *p, const char *name) {
  const struct choice *chosen = p->algorithm.of;
  struct choice current = p->of;
  if (!algorithm_is_whole(&p->algorithm)) fault("%s: an algorithm that is not whole", name);
  if (chosen == NULL) return;
  forget_addresses(&current.what);
  current.workspace = chosen->workspace;
  current.alignment = chosen->alignment;
  if (memcmp(chosen, &current, sizeof current) != 0) fault("%s: the algorithm was chosen for another matmul", name);
  if (p->workspace_bytes < chosen->workspace) fault("%s: less workspace than the algorithm takes", name);
}

static void require_aligned(const void *address, uint32_t alignment, const char *which) {
  if ((uintptr_t)address % alignment != 0)
    fault("cublasLtMatmul: %s is not at a multiple of %u bytes", which, (unsigned)alignment);
  if (memory_kind_of(address) != DEVICE) fault("cublasLtMatmul: %s is not the device's memory", which);
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t what, const void *alpha, const void *a,
                              cublasLtMatrixLayout_t a_layout, const void *b, cublasLtMatrixLayout_t b_layout,
                              const void *beta, const void *c, cublasLtMatrixLayout_t c_layout, void *d,
                              cublasLtMatrixLayout_t d_layout, const cublasLtMatmulAlgo_t *algorithm, void *workspace,
                              size_t workspace_bytes, cudaStream_t stream) {
  const char *name = "cublasLtMatmul";
  struct matmul p = {.of = choice_of(what, a_layout, b_layout, c_layout, d_layout, name),
                     .alpha = *(const float *)alpha,
                     .beta = *(const float *)beta,
                     .a = a,
                     .b = b,
                     .d = d,
                     .workspace = workspace,
                     .workspace_bytes = workspace_bytes,
                     .algorithm = algorithm_in(algorithm)};
  object_of(handle, LT_HANDLE, name);
  if (call(name)) return CUBLAS_STATUS_EXECUTION_FAILED;
  require_chosen(&p, name);
  if (c != d) fault("%s: C is not D", name);
  const struct choice *chosen = p.algorithm.of; /* one that was made by its number is for any addresses */
  const uint32_t alignment = chosen != NULL && chosen->alignment > 0 ? chosen->alignment : 4;
  require_aligned(a, alignment, "A");
  require_aligned(b, alignment, "B");
  require_aligned(d, alignment, "D");
  require_aligned(workspace, 256, "the workspace");
  if (is_fp8(p.of.a.type)) {
    require_aligned(p.of.what.a_scale, 4, "the scale of A");
    require_aligned(p.of.what.b_scale, 4, "the scale of B");
  }
  if (uses(&p.of.what, AUX_FLAG)) require_aligned(p.of.what.aux, 16, "the auxiliary matrix");
  submit(stream, name, blas_run_matmul, &p, sizeof p);
  return CUBLAS_STATUS_SUCCESS;
}
