/* Products by cuBLASLt. The library counts columns first, so it is given yᵀ = bᵀ aᵀ: its first operand is our b. */
#include "runtime/cuda/product.h"

#include "runtime/cuda/state.h"

#include <cublasLt.h>
#include <stdlib.h>
#include <string.h>

/* What decides over an algorithm; products that are alike in it share one. */
struct shape {
  int64_t type, result, tf32, accumulate, epilogue, rows, columns, depth, y_row, a_row, a_column, b_row, b_column;
  int64_t batch, y_step, a_step, b_step;
};

struct accel_cuda_algorithm {
  struct shape shape;
  cublasLtMatmulDesc_t what;
  cublasLtMatrixLayout_t a, b, y;
  cublasLtMatmulAlgo_t algorithm;
  struct accel_cuda_algorithm *next;
};

static cublasLtHandle_t handle;
static struct accel_cuda_algorithm *algorithms;

static void check(cublasStatus_t status, const char *call, int line) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  struct refusal refusal = {
      "cuBLASLt", call, __FILE__, line, cublasLtGetStatusName(status), cublasLtGetStatusString(status)};
  rt_refused(&refusal, NULL);
}
#define CHECK(call) check((call), #call, __LINE__)

static void close_products(void) {
  while (algorithms != NULL) {
    struct accel_cuda_algorithm *gone = algorithms;
    algorithms = gone->next;
    CHECK(cublasLtMatmulDescDestroy(gone->what));
    CHECK(cublasLtMatrixLayoutDestroy(gone->a));
    CHECK(cublasLtMatrixLayoutDestroy(gone->b));
    CHECK(cublasLtMatrixLayoutDestroy(gone->y));
    free(gone);
  }
  CHECK(cublasLtDestroy(handle));
  handle = NULL;
}

static cudaDataType_t type_of(enum accel_element element) {
  static const cudaDataType_t types[] = {
      [ACCEL_F32] = CUDA_R_32F, [ACCEL_BF16] = CUDA_R_16BF, [ACCEL_F16] = CUDA_R_16F};
  return types[element];
}

/* ---- Saying what is multiplied ---- */

static const cublasLtEpilogue_t epilogues[] = {
    [ACCEL_PLAIN] = CUBLASLT_EPILOGUE_DEFAULT, [ACCEL_BIAS] = CUBLASLT_EPILOGUE_BIAS,
    [ACCEL_GELU] = CUBLASLT_EPILOGUE_GELU_AUX, [ACCEL_BIAS_GELU] = CUBLASLT_EPILOGUE_GELU_AUX_BIAS,
    [ACCEL_RELU] = CUBLASLT_EPILOGUE_RELU_AUX, [ACCEL_BIAS_RELU] = CUBLASLT_EPILOGUE_RELU_AUX_BIAS,
    [ACCEL_DGELU] = CUBLASLT_EPILOGUE_DGELU,   [ACCEL_DGELU_SUM] = CUBLASLT_EPILOGUE_DGELU_BGRAD,
    [ACCEL_DRELU] = CUBLASLT_EPILOGUE_DRELU,   [ACCEL_DRELU_SUM] = CUBLASLT_EPILOGUE_DRELU_BGRAD,
    [ACCEL_SUM_A] = CUBLASLT_EPILOGUE_BGRADB,  [ACCEL_SUM_B] = CUBLASLT_EPILOGUE_BGRADA,
};

static bool has_aux(enum accel_epilogue epilogue) {
  return epilogue >= ACCEL_GELU && epilogue <= ACCEL_DRELU_SUM;
}

static bool has_bias(enum accel_epilogue epilogue) {
  static const bool without[] = {[ACCEL_PLAIN] = true, [ACCEL_GELU] = true,  [ACCEL_RELU] = true,
                                 [ACCEL_DGELU] = true, [ACCEL_DRELU] = true, [ACCEL_SUM_B] = false};
  return !without[epilogue];
}

static void set(cublasLtMatmulDesc_t what, cublasLtMatmulDescAttributes_t attribute, const void *value, size_t size) {
  CHECK(cublasLtMatmulDescSetAttribute(what, attribute, value, size));
}

static void set_pointers(const struct accel_cuda_algorithm *chosen, const void *bias, const void *aux) {
  if (has_bias((enum accel_epilogue)chosen->shape.epilogue))
    set(chosen->what, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof bias);
  if (has_aux((enum accel_epilogue)chosen->shape.epilogue))
    set(chosen->what, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, &aux, sizeof aux);
}

static cublasLtMatmulDesc_t describe(const struct shape *shape) {
  const cublasOperation_t plain = CUBLAS_OP_N, transposed = CUBLAS_OP_T;
  cublasComputeType_t compute = shape->tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
  cublasLtMatmulDesc_t what;
  CHECK(cublasLtMatmulDescCreate(&what, compute, CUDA_R_32F));
  set(what, CUBLASLT_MATMUL_DESC_TRANSA, shape->b_column == 1 ? &plain : &transposed, sizeof plain);
  set(what, CUBLASLT_MATMUL_DESC_TRANSB, shape->a_column == 1 ? &plain : &transposed, sizeof plain);
  set(what, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogues[shape->epilogue], sizeof *epilogues);
  if (!has_aux((enum accel_epilogue)shape->epilogue)) return what;
  set(what, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, &shape->y_row, sizeof shape->y_row);
  if (shape->batch > 1) set(what, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_BATCH_STRIDE, &shape->y_step, sizeof shape->y_step);
  return what;
}

/* A matrix of which `first` values follow each other, and `second` such rows. */
static cublasLtMatrixLayout_t layout(const struct shape *shape, int64_t type, int64_t first, int64_t second,
                                     int64_t row, int64_t step) {
  int32_t batch = (int32_t)shape->batch;
  cublasLtMatrixLayout_t made;
  CHECK(cublasLtMatrixLayoutCreate(&made, type_of((enum accel_element)type), (uint64_t)first, (uint64_t)second, row));
  CHECK(cublasLtMatrixLayoutSetAttribute(made, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batch, sizeof batch));
  CHECK(cublasLtMatrixLayoutSetAttribute(made, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &step, sizeof step));
  return made;
}

static void lay_out(struct accel_cuda_algorithm *chosen) {
  const struct shape *s = &chosen->shape;
  chosen->what = describe(s);
  chosen->a = s->a_column == 1 ? layout(s, s->type, s->depth, s->rows, s->a_row, s->a_step)
                               : layout(s, s->type, s->rows, s->depth, s->a_column, s->a_step);
  chosen->b = s->b_column == 1 ? layout(s, s->type, s->columns, s->depth, s->b_row, s->b_step)
                               : layout(s, s->type, s->depth, s->columns, s->b_column, s->b_step);
  chosen->y = layout(s, s->result, s->columns, s->rows, s->y_row, s->y_step);
}

/* ---- Choosing ---- */

static cublasLtMatmulPreference_t preference(void) {
  const struct accel_cuda_plan *plan = &rt_cuda_device()->plan;
  const uint32_t alignment = 16, once = CUBLASLT_REDUCTION_SCHEME_NONE;
  cublasLtMatmulPreference_t wish;
  CHECK(cublasLtMatmulPreferenceCreate(&wish));
  CHECK(cublasLtMatmulPreferenceSetAttribute(wish, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &plan->workspace_bytes,
                                             sizeof plan->workspace_bytes));
  if (plan->deterministic)
    CHECK(cublasLtMatmulPreferenceSetAttribute(wish, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &once, sizeof once));
  const cublasLtMatmulPreferenceAttributes_t addresses[] = {
      CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
      CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES};
  for (int i = 0; i < 4; i++)
    CHECK(cublasLtMatmulPreferenceSetAttribute(wish, addresses[i], &alignment, sizeof alignment));
  return wish;
}

static void choose(struct accel_cuda_algorithm *chosen, const char *name) {
  cublasLtMatmulHeuristicResult_t result;
  cublasLtMatmulPreference_t wish = preference();
  int found = 0;
  const void *somewhere = rt_cuda_device()->arena; /* an epilogue without its addresses has no algorithm */
  set_pointers(chosen, somewhere, somewhere);
  cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(handle, chosen->what, chosen->b, chosen->a, chosen->y,
                                                         chosen->y, wish, 1, &result, &found);
  CHECK(cublasLtMatmulPreferenceDestroy(wish));
  if (status != CUBLAS_STATUS_SUCCESS || found == 0 || result.state != CUBLAS_STATUS_SUCCESS) {
    struct problem problem;
    rt_problem(&problem, "cuBLASLt has no algorithm for the product of %s, %lld x %lld x %lld, in %zu bytes: %s", name,
               (long long)chosen->shape.rows, (long long)chosen->shape.depth, (long long)chosen->shape.columns,
               rt_cuda_device()->plan.workspace_bytes, cublasLtGetStatusString(status));
    rt_help(&problem, "look for a newer cuBLAS, or shapes whose rows are a multiple of 16 bytes");
    rt_fail(&problem, 1);
  }
  chosen->algorithm = result.algo;
}

static struct shape shape_of(const struct accel_cuda_product *p) {
  bool many = p->batch > 1;
  return (struct shape){.type = p->type,
                        .result = p->result,
                        .tf32 = p->type == ACCEL_F32 && p->tf32,
                        .accumulate = p->accumulate,
                        .epilogue = p->epilogue,
                        .rows = p->rows,
                        .columns = p->columns,
                        .depth = p->depth,
                        .y_row = p->y_row,
                        .a_row = p->a_row,
                        .a_column = p->a_column,
                        .b_row = p->b_row,
                        .b_column = p->b_column,
                        .batch = many ? p->batch : 1,
                        .y_step = many ? p->y_step : 0,
                        .a_step = many ? p->a_step : 0,
                        .b_step = many ? p->b_step : 0};
}

void accel_cuda_open_product(struct accel_cuda_product *product) {
  const struct shape shape = shape_of(product);
  if (handle == NULL) {
    CHECK(cublasLtCreate(&handle));
    rt_cuda_close_products = close_products;
  }
  for (product->algorithm = algorithms; product->algorithm != NULL; product->algorithm = product->algorithm->next)
    if (memcmp(&product->algorithm->shape, &shape, sizeof shape) == 0) return;
  struct accel_cuda_algorithm *chosen = calloc(1, sizeof *chosen);
  if (chosen == NULL) {
    struct problem problem;
    rt_problem(&problem, "no memory for the products");
    rt_fail(&problem, 1);
  }
  chosen->shape = shape;
  lay_out(chosen);
  choose(chosen, product->name);
  chosen->next = algorithms;
  product->algorithm = algorithms = chosen;
}

void accel_cuda_multiply(const struct accel_cuda_product *product, accel_stream stream, void *y, const void *a,
                         const void *b, void *bias, void *aux) {
  const struct cuda_device *device = rt_cuda_device();
  const struct accel_cuda_algorithm *chosen = product->algorithm;
  const float one = 1.0f, old = product->accumulate ? 1.0f : 0.0f;
  set_pointers(chosen, bias, aux);
  CHECK(cublasLtMatmul(handle, chosen->what, &one, b, chosen->b, a, chosen->a, &old, y, chosen->y, y, chosen->y,
                       &chosen->algorithm, device->arena + device->plan.workspace_offset, device->plan.workspace_bytes,
                       stream));
}
