/* GEMMs by cuBLASLt. The library counts columns first, so it is given yᵀ = bᵀ aᵀ: its first operand is our b. */
#include "runtime/gpu/algorithm.h"
#include "runtime/gpu/state.h"
#include "runtime/gpu/vendor.h"
#include "runtime/process/fail.h"

#include <stdlib.h>
#include <string.h>

static cublasLtHandle_t handle;
static struct accel_gpu_algorithm *algorithms;
static bool measures;

static void close_gemms(void) {
  if (measures) rt_measured_write();
  while (algorithms != NULL) {
    struct accel_gpu_algorithm *gone = algorithms;
    algorithms = gone->next;
    RT_BLAS(cublasLtMatmulDescDestroy(gone->what));
    RT_BLAS(cublasLtMatrixLayoutDestroy(gone->a));
    RT_BLAS(cublasLtMatrixLayoutDestroy(gone->b));
    RT_BLAS(cublasLtMatrixLayoutDestroy(gone->y));
    RT_CUDA(cudaFree(gone->ones));
    free(gone);
  }
  RT_BLAS(cublasLtDestroy(handle));
  handle = NULL;
}

/* ---- Saying what is multiplied ---- */

static const cublasLtEpilogue_t epilogues[] = {
    [ACCEL_PLAIN] = CUBLASLT_EPILOGUE_DEFAULT,  [ACCEL_BIAS] = CUBLASLT_EPILOGUE_BIAS,
    [ACCEL_GELU] = CUBLASLT_EPILOGUE_GELU_AUX,  [ACCEL_BIAS_GELU] = CUBLASLT_EPILOGUE_GELU_AUX_BIAS,
    [ACCEL_RELU] = CUBLASLT_EPILOGUE_RELU_AUX,  [ACCEL_BIAS_RELU] = CUBLASLT_EPILOGUE_RELU_AUX_BIAS,
    [ACCEL_DGELU] = CUBLASLT_EPILOGUE_DGELU,    [ACCEL_DGELU_SUM] = CUBLASLT_EPILOGUE_DGELU_BGRAD,
    [ACCEL_DRELU] = CUBLASLT_EPILOGUE_DRELU,    [ACCEL_DRELU_SUM] = CUBLASLT_EPILOGUE_DRELU_BGRAD,
    [ACCEL_SUM_A] = CUBLASLT_EPILOGUE_BGRADB,   [ACCEL_SUM_B] = CUBLASLT_EPILOGUE_BGRADA,
    [ACCEL_SCALED] = CUBLASLT_EPILOGUE_DEFAULT,
};

static bool has_aux(enum accel_epilogue epilogue) {
  return epilogue >= ACCEL_GELU && epilogue <= ACCEL_DRELU_SUM;
}

static bool has_bias(enum accel_epilogue epilogue) {
  static const bool without[] = {[ACCEL_PLAIN] = true, [ACCEL_GELU] = true,  [ACCEL_RELU] = true,
                                 [ACCEL_DGELU] = true, [ACCEL_DRELU] = true, [ACCEL_SCALED] = true};
  return !without[epilogue];
}

static void set(cublasLtMatmulDesc_t what, cublasLtMatmulDescAttributes_t attribute, const void *value, size_t size) {
  RT_BLAS(cublasLtMatmulDescSetAttribute(what, attribute, value, size));
}

static void set_pointers(const struct accel_gpu_algorithm *chosen, const void *bias, const void *aux) {
  if (has_bias(chosen->fused)) set(chosen->what, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof bias);
  if (has_aux(chosen->fused)) set(chosen->what, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, &aux, sizeof aux);
  if (chosen->fused != ACCEL_SCALED) return;
  set(chosen->what, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, &aux, sizeof aux);
  set(chosen->what, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, &bias, sizeof bias);
}

static cublasLtMatmulDesc_t describe(const struct shape *shape, enum accel_epilogue epilogue) {
  const cublasOperation_t plain = CUBLAS_OP_N, transposed = CUBLAS_OP_T;
  cublasComputeType_t compute = shape->tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
  cublasLtMatmulDesc_t what;
  RT_BLAS(cublasLtMatmulDescCreate(&what, compute, CUDA_R_32F));
  set(what, CUBLASLT_MATMUL_DESC_TRANSA, shape->b_column == 1 ? &plain : &transposed, sizeof plain);
  set(what, CUBLASLT_MATMUL_DESC_TRANSB, shape->a_column == 1 ? &plain : &transposed, sizeof plain);
  set(what, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogues[epilogue], sizeof *epilogues);
  if (!has_aux(epilogue)) return what;
  set(what, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, &shape->y_row, sizeof shape->y_row);
  if (shape->batch > 1) set(what, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_BATCH_STRIDE, &shape->y_step, sizeof shape->y_step);
  return what;
}

/* A matrix of which `first` values follow each other, and `second` such rows; of one row no step leads to another. */
static cublasLtMatrixLayout_t layout(const struct shape *shape, cudaDataType_t type, int64_t first, int64_t second,
                                     int64_t row, int64_t step) {
  int32_t batch = (int32_t)shape->batch;
  cublasLtMatrixLayout_t made;
  if (second == 1 && row < first) row = first;
  RT_BLAS(cublasLtMatrixLayoutCreate(&made, type, (uint64_t)first, (uint64_t)second, row));
  RT_BLAS(cublasLtMatrixLayoutSetAttribute(made, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batch, sizeof batch));
  RT_BLAS(cublasLtMatrixLayoutSetAttribute(made, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &step, sizeof step));
  return made;
}

static void lay_out(struct accel_gpu_algorithm *chosen) {
  const struct shape *s = &chosen->shape;
  const cudaDataType_t a = rt_blas_factor(s->type, false), b = rt_blas_factor(s->type, true);
  chosen->fused = (enum accel_epilogue)s->epilogue;
  chosen->what = describe(s, chosen->fused);
  chosen->a = s->a_column == 1 ? layout(s, a, s->depth, s->rows, s->a_row, s->a_step)
                               : layout(s, a, s->rows, s->depth, s->a_column, s->a_step);
  chosen->b = s->b_column == 1 ? layout(s, b, s->columns, s->depth, s->b_row, s->b_step)
                               : layout(s, b, s->depth, s->columns, s->b_column, s->b_step);
  chosen->y = layout(s, rt_blas_type(s->result), s->columns, s->rows, s->y_row, s->y_step);
}

/* ---- Choosing ---- */

/* False where the library has none. */
static bool choose(struct accel_gpu_algorithm *chosen, const char *name) {
  cublasLtMatmulHeuristicResult_t best;
  const void *somewhere = rt_cuda_device()->arena; /* an epilogue without its addresses has no algorithm */
  set_pointers(chosen, somewhere, somewhere);
  if (chosen->wanted != NULL) {
    if (rt_algorithm_of(handle, chosen->wanted, chosen)) return true;
    rt_warn("%s has no '%s' for the matmul of %s here: its own choice is taken; accel-gen tune measures again",
            rt_gpu_vendor.blas, chosen->wanted, name);
  }
  if (rt_algorithms(handle, chosen, &best, 1) == 0) return false;
  chosen->algorithm = best.algo;
  return true;
}

_Noreturn static void no_algorithm(const struct accel_gpu_algorithm *chosen, const char *name) {
  struct problem problem;
  rt_problem(&problem, "%s has no algorithm for the matmul of %s, %lld x %lld x %lld, in %zu bytes", rt_gpu_vendor.blas,
             name, (long long)chosen->shape.rows, (long long)chosen->shape.depth, (long long)chosen->shape.columns,
             rt_cuda_device()->plan.workspace_bytes);
  rt_help(&problem, "look for a newer version of it, or shapes whose rows are a multiple of 16 bytes");
  rt_fail(&problem, 1);
}

static struct shape shape_of(const struct accel_gpu_gemm *p) {
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
                        .alignment = p->alignment > 0 ? p->alignment : 16,
                        .batch = many ? p->batch : 1,
                        .y_step = many ? p->y_step : 0,
                        .a_step = many ? p->a_step : 0,
                        .b_step = many ? p->b_step : 0};
}

/* Names of algorithms, or none. */
static bool is_same(const char *a, const char *b) {
  return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

/* ---- Sums that the library does not fuse ---- */

/* The epilogue without its sums; false where it has none. */
static bool without_sums(enum accel_epilogue *epilogue) {
  static const enum accel_epilogue left[] = {[ACCEL_DGELU_SUM] = ACCEL_DGELU,
                                             [ACCEL_DRELU_SUM] = ACCEL_DRELU,
                                             [ACCEL_SUM_A] = ACCEL_PLAIN,
                                             [ACCEL_SUM_B] = ACCEL_PLAIN};
  bool sums = has_bias(*epilogue) && *epilogue >= ACCEL_DGELU;
  if (sums) *epilogue = left[*epilogue];
  return sums;
}

/* One row of ones by the matrix whose rows are added up. */
static struct accel_gpu_gemm gemm_of_ones(const struct shape *s, const char *name) {
  bool of_y = s->epilogue != ACCEL_SUM_A && s->epilogue != ACCEL_SUM_B, of_a = s->epilogue == ACCEL_SUM_A;
  int64_t depth = of_y ? s->rows : s->depth, columns = of_a ? s->rows : s->columns;
  return (struct accel_gpu_gemm){.name = name,
                                 .type = (enum accel_element)(of_y ? s->result : s->type),
                                 .result = (enum accel_element)s->result,
                                 .rows = 1,
                                 .columns = columns,
                                 .depth = depth,
                                 .alignment = s->alignment,
                                 .y_row = columns,
                                 .a_row = depth,
                                 .a_column = 1,
                                 .b_row = of_y   ? s->y_row
                                          : of_a ? s->a_column
                                                 : s->b_row,
                                 .b_column = of_y   ? 1
                                             : of_a ? s->a_row
                                                    : s->b_column};
}

static void *make_ones(enum accel_element type, int64_t count) {
  static const uint32_t one[] = {[ACCEL_F32] = 0x3f800000, [ACCEL_BF16] = 0x3f803f80, [ACCEL_F16] = 0x3c003c00};
  size_t words = type == ACCEL_F32 ? (size_t)count : ((size_t)count + 1) / 2;
  uint32_t *values = malloc(words * sizeof *values);
  void *made;
  if (values == NULL) {
    struct problem problem;
    rt_problem(&problem, "no memory for the matmuls");
    rt_fail(&problem, 1);
  }
  for (size_t i = 0; i < words; i++) values[i] = one[type];
  RT_CUDA(cudaMalloc(&made, words * sizeof *values));
  RT_CUDA(cudaMemcpy(made, values, words * sizeof *values, cudaMemcpyHostToDevice));
  free(values);
  return made;
}

/* Lets the library do the GEMM without its sums; false where it cannot. */
static bool part_sums(struct accel_gpu_algorithm *chosen, const char *name) {
  if (chosen->shape.batch > 1 || !without_sums(&chosen->fused)) return false;
  RT_BLAS(cublasLtMatmulDescDestroy(chosen->what));
  chosen->what = describe(&chosen->shape, chosen->fused);
  if (!choose(chosen, name)) return false;
  chosen->sums = gemm_of_ones(&chosen->shape, name);
  accel_gpu_open_gemm(&chosen->sums);
  chosen->ones = make_ones(chosen->sums.type, chosen->sums.depth);
  return true;
}

/* ---- GEMMs ---- */

/* Ends the process where the device multiplies no codes of 8 bits. */
static void require_fp8(const char *name) {
  const struct cuda_device *device = rt_cuda_device();
  struct problem problem;
  if (rt_blas_has_fp8()) return;
  rt_problem(&problem, "GPU %d (%s) multiplies no numbers of 8 bits, as the matmul of %s does", device->number,
             device->properties.name, name);
  rt_help(&problem,
          "GPUs of compute capability 8.9 and later do; generate with precision.fp8.emulate: true for this one");
  rt_fail(&problem, 1);
}

void accel_gpu_open_gemm(struct accel_gpu_gemm *gemm) {
  const struct shape shape = shape_of(gemm);
  if (gemm->epilogue == ACCEL_SCALED) require_fp8(gemm->name);
  if (handle == NULL) {
    RT_BLAS(cublasLtCreate(&handle));
    measures = rt_cuda_measures();
    rt_cuda_close_gemms = close_gemms;
  }
  for (gemm->algorithm = algorithms; gemm->algorithm != NULL; gemm->algorithm = gemm->algorithm->next)
    if (memcmp(&gemm->algorithm->shape, &shape, sizeof shape) == 0 &&
        is_same(gemm->algorithm->wanted, gemm->algorithm_name))
      return;
  struct accel_gpu_algorithm *chosen = calloc(1, sizeof *chosen);
  if (chosen == NULL) {
    struct problem problem;
    rt_problem(&problem, "no memory for the matmuls");
    rt_fail(&problem, 1);
  }
  chosen->shape = shape;
  chosen->wanted = gemm->algorithm_name;
  lay_out(chosen);
  if (!choose(chosen, gemm->name) && !part_sums(chosen, gemm->name)) no_algorithm(chosen, gemm->name);
  chosen->next = algorithms;
  gemm->algorithm = algorithms = chosen;
}

void accel_gpu_multiply(const struct accel_gpu_gemm *gemm, accel_stream stream, void *y, const void *a, const void *b,
                        void *bias, void *aux) {
  const struct cuda_device *device = rt_cuda_device();
  const struct accel_gpu_algorithm *chosen = gemm->algorithm;
  const float one = 1.0f, old = gemm->accumulate ? 1.0f : 0.0f;
  set_pointers(chosen, bias, aux);
  if (measures) rt_measure_gemm(handle, gemm, &(struct operands){y, a, b}, stream);
  RT_BLAS(cublasLtMatmul(handle, chosen->what, &one, b, chosen->b, a, chosen->a, &old, y, chosen->y, y, chosen->y,
                         &chosen->algorithm, device->arena + device->plan.workspace_offset,
                         device->plan.workspace_bytes, stream));
  if (chosen->ones == NULL) return;
  const void *added = chosen->shape.epilogue == ACCEL_SUM_A ? a : chosen->shape.epilogue == ACCEL_SUM_B ? b : y;
  accel_gpu_multiply(&chosen->sums, stream, bias, chosen->ones, added, NULL, NULL);
}
