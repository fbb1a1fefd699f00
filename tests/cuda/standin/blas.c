/* cuBLASLt: products as its documentation states them, column by column, added up in double. */
#include "tests/cuda/standin/algorithms.h"
#include "tests/cuda/standin/core.h"

#include "runtime/values/half.h"

#include <cublasLt.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct description {
  cublasComputeType_t compute;
  cublasOperation_t transposed_a, transposed_b;
  cublasLtEpilogue_t epilogue;
  void *bias, *aux;
  int64_t aux_row, aux_step;
};

struct matrix {
  cudaDataType type;
  int64_t rows, columns, ld, step;
  int32_t batch;
};

struct preference {
  size_t workspace;
  uint32_t reduction, alignment;
};

/* What an algorithm was chosen for stands in it. */
struct choice {
  struct description what;
  struct matrix a, b, d;
  size_t workspace;
};

struct product {
  struct choice of;
  float alpha, beta;
  const void *a, *b;
  void *d, *workspace;
  size_t workspace_bytes;
  struct algorithm algorithm;
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

/* ---- What is asked for ---- */

static size_t width(cudaDataType type) {
  return type == CUDA_R_32F ? 4 : 2;
}

static bool uses(const struct description *what, unsigned flag) {
  return ((unsigned)what->epilogue & flag) != 0;
}
enum {
  RELU_FLAG = 2,
  BIAS_FLAG = 4,
  DRELU_FLAG = 8,
  GELU_FLAG = 32,
  DGELU_FLAG = 64,
  SUM_D_FLAG = 16,
  AUX_FLAG = 128,
  SUM_A_FLAG = 256,
  SUM_B_FLAG = 512
};

/* Of relu a bit for each element is kept. */
static bool masks(const struct description *what) {
  return uses(what, RELU_FLAG | DRELU_FLAG);
}

static int64_t depth_of(const struct choice *of) {
  return of->what.transposed_a == CUBLAS_OP_N ? of->a.columns : of->a.rows;
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
  if (of.a.type != of.b.type) fault("%s: factors of two types", name);
  if (of.a.type == CUDA_R_32F && of.d.type != CUDA_R_32F) fault("%s: a result of 16 bits from float32", name);
  int64_t multiple = masks(&of.what) ? 128 : 8;
  if (uses(&of.what, AUX_FLAG) &&
      (of.what.aux == NULL || of.what.aux_row % multiple != 0 || of.what.aux_row < of.d.rows))
    fault("%s: the auxiliary matrix's address, or its rows, which must be a multiple of %d", name, (int)multiple);
  if (uses(&of.what, BIAS_FLAG | SUM_D_FLAG | SUM_A_FLAG | SUM_B_FLAG) && of.what.bias == NULL)
    fault("%s: no address of the bias", name);
  return of;
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
  of.what.bias = of.what.aux = NULL;
  of.workspace = wish->workspace;
  struct choice *kept = malloc(sizeof *kept); /* as long as the process: an algorithm has no end */
  if (kept == NULL || wanted < 1) fault("no memory, or nothing asked for");
  *kept = of;
  *found = wanted < algorithms_offered() ? wanted : algorithms_offered();
  for (int i = 0; i < *found; i++) {
    results[i] = (cublasLtMatmulHeuristicResult_t){.workspaceSize = wish->workspace, .state = CUBLAS_STATUS_SUCCESS};
    algorithm_put(&results[i].algo, algorithm_offered(i, kept));
  }
  return CUBLAS_STATUS_SUCCESS;
}

/* ---- The product ---- */

static double value_at(const void *base, cudaDataType type, int64_t at) {
  if (type == CUDA_R_32F) return ((const float *)base)[at];
  uint16_t bits = ((const uint16_t *)base)[at];
  return type == CUDA_R_16BF ? rt_widen_bfloat16(bits) : rt_widen_float16(bits);
}

static void put_at(void *base, cudaDataType type, int64_t at, double value) {
  if (type == CUDA_R_32F)
    ((float *)base)[at] = (float)value;
  else
    ((uint16_t *)base)[at] = type == CUDA_R_16BF ? rt_narrow_bfloat16((float)value) : rt_narrow_float16((float)value);
}

static void touch_matrix(const void *base, const struct matrix *matrix, bool writes) {
  size_t size = width(matrix->type);
  for (int64_t n = 0; n < matrix->batch; n++)
    for (int64_t c = 0; c < matrix->columns; c++)
      touch((const char *)base + (size_t)(n * matrix->step + c * matrix->ld) * size, (size_t)matrix->rows * size,
            writes);
}

/* gelu(x) = x/2 (1 + tanh(√(2/π) (x + 0.044715 x³))) */
static double gelu(double x) {
  return 0.5 * x * (1.0 + tanh(sqrt(2.0 / acos(-1.0)) * (x + 0.044715 * x * x * x)));
}

static double gelu_slope(double x) {
  double root = sqrt(2.0 / acos(-1.0)), t = tanh(root * (x + 0.044715 * x * x * x));
  return 0.5 * (1.0 + t) + 0.5 * x * (1.0 - t * t) * root * (1.0 + 3.0 * 0.044715 * x * x);
}

/* A number with the ten bits of mantissa that TF32 has, to nearest even. */
static double rounded(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  bits += 0xfff + (bits >> 13 & 1);
  bits &= ~0x1fffu;
  memcpy(&value, &bits, sizeof bits);
  return value;
}

/* A factor as [other][depth] doubles. */
static double *unpacked(const void *base, const struct matrix *matrix, int64_t n, bool depth_follows, bool tf32) {
  int64_t others = depth_follows ? matrix->columns : matrix->rows;
  int64_t depth = depth_follows ? matrix->rows : matrix->columns;
  double *all = malloc((size_t)(others * depth + 1) * sizeof *all);
  if (all == NULL) fault("no memory");
  for (int64_t i = 0; i < others; i++)
    for (int64_t k = 0; k < depth; k++)
      all[i * depth + k] =
          value_at(base, matrix->type, n * matrix->step + (depth_follows ? i * matrix->ld + k : k * matrix->ld + i));
  for (int64_t i = 0; i < others * depth && tf32; i++) all[i] = rounded((float)all[i]);
  return all;
}

static double epilogue(const struct product *p, int64_t n, int64_t i, int64_t j, double sum) {
  const struct description *what = &p->of.what;
  int64_t aux = n * what->aux_step + j * what->aux_row + i;
  if (uses(what, BIAS_FLAG)) sum += value_at(what->bias, p->of.d.type, i);
  if (uses(what, GELU_FLAG)) {
    put_at(what->aux, p->of.d.type, aux, sum);
    return gelu(sum);
  }
  unsigned char *byte = masks(what) ? (unsigned char *)what->aux + aux / 8 : NULL, bit = (unsigned char)(1u << aux % 8);
  if (uses(what, RELU_FLAG)) {
    *byte = (unsigned char)((sum > 0.0 ? *byte | bit : *byte & ~bit));
    return sum > 0.0 ? sum : 0.0;
  }
  if (uses(what, DRELU_FLAG)) return *byte & bit ? sum : 0.0;
  return uses(what, DGELU_FLAG) ? sum * gelu_slope(value_at(what->aux, p->of.d.type, aux)) : sum;
}

/* The vector that an epilogue leaves: sums over rows of D, or over the depth of a factor. */
static void leave_sums(const struct product *p, const double *a, const double *b, const double *d) {
  const struct description *what = &p->of.what;
  int64_t m = p->of.d.rows, n = p->of.d.columns, k = depth_of(&p->of);
  bool of_b = uses(what, SUM_B_FLAG), of_d = uses(what, SUM_D_FLAG);
  if (!of_b && !of_d && !uses(what, SUM_A_FLAG)) return;
  int64_t count = of_b ? n : m, along = of_d ? n : k;
  touch(what->bias, (size_t)count * width(p->of.d.type), true);
  for (int64_t i = 0; i < count; i++) {
    double sum = 0.0;
    for (int64_t j = 0; j < along; j++) sum += of_d ? d[j * m + i] : of_b ? b[i * k + j] : a[i * k + j];
    put_at(what->bias, p->of.d.type, i, sum);
  }
}

static void multiply_one(const struct product *p, int64_t batch) {
  const struct choice *of = &p->of;
  int64_t m = of->d.rows, n = of->d.columns, depth = depth_of(of);
  bool tf32 = of->what.compute == CUBLAS_COMPUTE_32F_FAST_TF32;
  double *a = unpacked(p->a, &of->a, batch, of->what.transposed_a != CUBLAS_OP_N, tf32);
  double *b = unpacked(p->b, &of->b, batch, of->what.transposed_b == CUBLAS_OP_N, tf32);
  double *d = malloc((size_t)(m * n + 1) * sizeof *d);
  if (d == NULL) fault("no memory");
  for (int64_t j = 0; j < n; j++)
    for (int64_t i = 0; i < m; i++) {
      const double *x = a + i * depth, *y = b + j * depth;
      double sum = 0.0;
      for (int64_t k = 0; k < depth; k++) sum += x[k] * y[k];
      int64_t at = batch * of->d.step + j * of->d.ld + i;
      sum = p->alpha * sum + (p->beta != 0.0f ? p->beta * value_at(p->d, of->d.type, at) : 0.0);
      d[j * m + i] = epilogue(p, batch, i, j, sum);
      put_at(p->d, of->d.type, at, d[j * m + i]);
    }
  leave_sums(p, a, b, d);
  free(a);
  free(b);
  free(d);
}

static void run_product(const void *arguments) {
  const struct product *p = arguments;
  const struct description *what = &p->of.what;
  struct matrix aux = p->of.d;
  aux.ld = what->aux_row;
  aux.step = what->aux_step;
  touch_matrix(p->a, &p->of.a, false);
  touch_matrix(p->b, &p->of.b, false);
  if (p->beta != 0.0f) touch_matrix(p->d, &p->of.d, false);
  touch_matrix(p->d, &p->of.d, true);
  if (uses(what, BIAS_FLAG)) touch(what->bias, (size_t)p->of.d.rows * width(p->of.d.type), false);
  if (uses(what, AUX_FLAG) && !masks(what)) touch_matrix(what->aux, &aux, uses(what, GELU_FLAG));
  if (masks(what))
    touch(what->aux, (size_t)((p->of.d.batch - 1) * aux.step + p->of.d.columns * aux.ld) / 8, uses(what, RELU_FLAG));
  /* Its beginning speaks for all of it, which may be tens of MiB for each of many small products. */
  touch(p->workspace, p->workspace_bytes < 4096 ? p->workspace_bytes : 4096, true);
  for (int64_t n = 0; n < p->of.a.batch; n++) multiply_one(p, n);
  products_time += algorithm_time(&p->algorithm);
}

/* A fault where the algorithm is for another product; one that was made by its number is for any. */
static void require_chosen(const struct product *p, const char *name) {
  const struct choice *chosen = p->algorithm.of;
  struct choice asked = p->of;
  if (!algorithm_is_whole(&p->algorithm)) fault("%s: an algorithm that is not whole", name);
  if (chosen == NULL) return;
  asked.what.bias = asked.what.aux = NULL;
  asked.workspace = chosen->workspace;
  if (memcmp(chosen, &asked, sizeof asked) != 0) fault("%s: the algorithm was chosen for another product", name);
  if (p->workspace_bytes < chosen->workspace) fault("%s: less workspace than the algorithm takes", name);
}

static void require_aligned(const void *address, const char *which) {
  if ((uintptr_t)address % 16 != 0) fault("cublasLtMatmul: %s is not at a multiple of 16 bytes", which);
  if (memory_place(address) != DEVICE) fault("cublasLtMatmul: %s is not the device's memory", which);
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t what, const void *alpha, const void *a,
                              cublasLtMatrixLayout_t a_layout, const void *b, cublasLtMatrixLayout_t b_layout,
                              const void *beta, const void *c, cublasLtMatrixLayout_t c_layout, void *d,
                              cublasLtMatrixLayout_t d_layout, const cublasLtMatmulAlgo_t *algorithm, void *workspace,
                              size_t workspace_bytes, cudaStream_t stream) {
  const char *name = "cublasLtMatmul";
  struct product p = {.of = choice_of(what, a_layout, b_layout, c_layout, d_layout, name),
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
  require_aligned(a, "A");
  require_aligned(b, "B");
  require_aligned(d, "D");
  require_aligned(workspace, "the workspace");
  if (uses(&p.of.what, AUX_FLAG)) require_aligned(p.of.what.aux, "the auxiliary matrix");
  submit(stream, name, run_product, &p, sizeof p);
  return CUBLAS_STATUS_SUCCESS;
}
