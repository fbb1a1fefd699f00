#include "include/accel/gemm.h"

#include "runtime/base/problem.h"
#include "runtime/onednn/gemm.h"
#include "runtime/onednn/lines.h"
#include "runtime/onednn/onednn.h"
#include "runtime/onednn/packed.h"
#include "runtime/process/fail.h"

#include <omp.h>
#include <stdlib.h>
#include <string.h>

struct accel_primitive {
  dnnl_primitive_t primitive;
  dnnl_stream_t stream;
  dnnl_memory_t a, b, y;
};

void accel_note(const char *what) {
  rt_warn("%s", what);
}

/* ---- oneDNN's primitives ---- */

const dnnl_data_type_t rt_gemm_types[] = {dnnl_f32, dnnl_bf16, dnnl_f16};

static dnnl_status_t choose(dnnl_primitive_desc_t *to, const rt_description matrices[3],
                            dnnl_primitive_attr_t attributes) {
  dnnl_engine_t engine = rt_onednn_engine();
#if DNNL_VERSION_MAJOR >= 3
  return dnnl_matmul_primitive_desc_create(to, engine, matrices[0], matrices[1], NULL, matrices[2], attributes);
#else
  dnnl_matmul_desc_t matmul;
  dnnl_status_t made = dnnl_matmul_desc_init(&matmul, &matrices[0], &matrices[1], NULL, &matrices[2]);
  return made != dnnl_success ? made : dnnl_primitive_desc_create(to, &matmul, attributes, engine, NULL);
#endif
}

dnnl_status_t rt_describe_gemm(const struct accel_gemm *p, rt_description matrices[3]) {
  const int64_t extents[3][2] = {{p->rows, p->depth}, {p->depth, p->columns}, {p->rows, p->columns}};
  const int64_t inner[3][2] = {{p->a_row, p->a_column}, {p->b_row, p->b_column}, {p->y_row, 1}};
  const int64_t *outer[3] = {p->a_step, p->b_step, p->y_step};
  int rank = p->batch_rank + 2;
  for (int m = 0; m < 3; m++) {
    dnnl_dims_t shape, steps;
    for (int i = 0; i < p->batch_rank; i++) {
      bool shared = outer[m][i] == 0; /* one matrix for all of that dimension */
      shape[i] = shared ? 1 : p->batch[i];
      steps[i] = shared ? 1 : outer[m][i];
    }
    for (int i = 0; i < 2; i++) {
      shape[p->batch_rank + i] = extents[m][i];
      steps[p->batch_rank + i] = inner[m][i];
    }
    dnnl_status_t made = rt_describe(&matrices[m], rank, shape, rt_gemm_types[m == 2 ? p->result : p->type], steps);
    if (made != dnnl_success) return made;
  }
  return dnnl_success;
}

dnnl_primitive_desc_t rt_choose_gemm(const struct accel_gemm *p, const rt_description matrices[3],
                                     dnnl_scratchpad_mode_t scratchpad) {
  dnnl_primitive_attr_t attributes;
  dnnl_post_ops_t sums;
  if (dnnl_primitive_attr_create(&attributes) != dnnl_success) return NULL;
  if (dnnl_post_ops_create(&sums) != dnnl_success) return NULL;
  if (p->accumulate) rt_add_sum(sums);
  dnnl_primitive_attr_set_post_ops(attributes, sums);
  dnnl_primitive_attr_set_scratchpad_mode(attributes, scratchpad);
  dnnl_primitive_desc_t found = NULL;
  if (choose(&found, matrices, attributes) != dnnl_success) found = NULL;
  const char *name = "ref";
  if (found != NULL) dnnl_primitive_desc_query(found, dnnl_query_impl_info_str, 0, (void *)&name);
  if (found != NULL && strncmp(name, "ref", 3) == 0) {
    dnnl_primitive_desc_destroy(found);
    found = NULL;
  }
  dnnl_post_ops_destroy(sums);
  dnnl_primitive_attr_destroy(attributes);
  return found;
}

/* NULL when the processor has nothing for the GEMM. */
static struct accel_primitive *make_primitive(const struct accel_gemm *p) {
  rt_description matrices[3];
  if (rt_describe_gemm(p, matrices) != dnnl_success) return NULL;
  dnnl_primitive_desc_t found = rt_choose_gemm(p, matrices, dnnl_scratchpad_mode_library);
  struct accel_primitive *made = found != NULL ? calloc(1, sizeof *made) : NULL;
  if (made != NULL) {
    made->stream = rt_onednn_stream();
    bool whole = dnnl_primitive_create(&made->primitive, found) == dnnl_success &&
                 rt_make_memory(&made->a, rt_described_by(&matrices[0])) == dnnl_success &&
                 rt_make_memory(&made->b, rt_described_by(&matrices[1])) == dnnl_success &&
                 rt_make_memory(&made->y, rt_described_by(&matrices[2])) == dnnl_success;
    if (!whole) {
      free(made);
      made = NULL;
    }
  }
  if (found != NULL) dnnl_primitive_desc_destroy(found);
  for (int m = 0; m < 3; m++) rt_forget(&matrices[m]);
  return made;
}

/* ---- In float32, block by block ---- */

enum { ROWS = 128, COLUMNS = 128, DEPTH = 256 };

/* One block of y, from row r and column c on. */
static void multiply_block(const struct accel_gemm *p, void *y, const uint16_t *a, const uint16_t *b, int64_t r,
                           int64_t c) {
  _Alignas(64) float left[ROWS * DEPTH], right[DEPTH * COLUMNS], sum[ROWS * COLUMNS];
  int64_t rows = rt_least(ROWS, p->rows - r), columns = rt_least(COLUMNS, p->columns - c);
  bool a_lines = p->a_column == 1, b_lines = p->b_column == 1; /* by rows, or by columns */
  for (int64_t k = 0; k < p->depth; k += DEPTH) {
    int64_t depth = rt_least(DEPTH, p->depth - k);
    const uint16_t *from_a = a + r * p->a_row + k * p->a_column, *from_b = b + k * p->b_row + c * p->b_column;
    rt_widen_lines(p->type, left, a_lines ? DEPTH : ROWS, from_a, a_lines ? p->a_row : p->a_column,
                   a_lines ? rows : depth, a_lines ? depth : rows);
    rt_widen_lines(p->type, right, b_lines ? COLUMNS : DEPTH, from_b, b_lines ? p->b_row : p->b_column,
                   b_lines ? depth : columns, b_lines ? columns : depth);
    rt_onednn_note(dnnl_sgemm(a_lines ? 'N' : 'T', b_lines ? 'N' : 'T', rows, columns, depth, 1.0f, left,
                              a_lines ? DEPTH : ROWS, right, b_lines ? COLUMNS : DEPTH, k > 0 ? 1.0f : 0.0f, sum,
                              COLUMNS));
  }
  char *result = (char *)y + (r * p->y_row + c) * (p->result == ACCEL_F32 ? 4 : 2);
  rt_store_lines(p->result, p->accumulate, result, p->y_row, sum, COLUMNS, rows, columns);
}

/* Where the matrices of one of the batch begin, in elements. */
struct begins {
  int64_t y, a, b;
};

static int64_t matrices_of(const struct accel_gemm *p) {
  int64_t matrices = 1;
  for (int i = 0; i < p->batch_rank; i++) matrices *= p->batch[i];
  return matrices;
}

static struct begins begins_of(const struct accel_gemm *p, int64_t matrix) {
  struct begins begins = {0};
  for (int i = p->batch_rank - 1; i >= 0; i--) {
    int64_t at = matrix % p->batch[i];
    matrix /= p->batch[i];
    begins.y += at * p->y_step[i];
    begins.a += at * p->a_step[i];
    begins.b += at * p->b_step[i];
  }
  return begins;
}

static void emulate(const struct accel_gemm *p, void *y, const uint16_t *a, const uint16_t *b) {
  int64_t down = (p->rows + ROWS - 1) / ROWS, across = (p->columns + COLUMNS - 1) / COLUMNS;
  int64_t blocks = matrices_of(p) * down * across;
#pragma omp parallel for
  for (int64_t block = 0; block < blocks; block++) {
    const struct begins at = begins_of(p, block / (down * across));
    char *matrix = (char *)y + at.y * (p->result == ACCEL_F32 ? 4 : 2);
    multiply_block(p, matrix, a + at.a, b + at.b, block / across % down * ROWS, block % across * COLUMNS);
  }
}

/* ---- By oneDNN's gemm, in parts or whole ---- */

/* The GEMM of bfloat16 that gives floats, which oneDNN exports and does not declare: the one that its inner products
 * are made with. A build may lack it. */
extern dnnl_status_t dnnl_gemm_bf16bf16f32(char transa, char transb, dnnl_dim_t rows, dnnl_dim_t columns,
                                           dnnl_dim_t depth, float alpha, const uint16_t *a, dnnl_dim_t a_step,
                                           const uint16_t *b, dnnl_dim_t b_step, float beta, float *c,
                                           dnnl_dim_t c_step) __attribute__((weak));

dnnl_status_t rt_gemm_bfloat16(char transa, char transb, int64_t rows, int64_t columns, int64_t depth,
                               const uint16_t *a, int64_t a_step, const uint16_t *b, int64_t b_step, float beta,
                               float *y, int64_t y_step) {
  return dnnl_gemm_bf16bf16f32(transa, transb, rows, columns, depth, 1.0f, a, a_step, b, b_step, beta, y, y_step);
}

bool rt_has_gemm_bfloat16(void) {
  const uint16_t one = 0x3f80;
  float y = 0;
  if (dnnl_gemm_bf16bf16f32 == NULL) return false;
  return rt_gemm_bfloat16('N', 'N', 1, 1, 1, &one, 1, &one, 1, 0.0f, &y, 1) == dnnl_success && y == 1.0f;
}

/* Columns of y from `first` on, or rows where there are more of them. */
static dnnl_status_t multiply_part(const struct accel_gemm *p, struct begins at, float *y, const void *a, const void *b,
                                   int64_t first, int64_t count) {
  const bool by_rows = p->rows > p->columns;
  const char transa = p->a_column == 1 ? 'N' : 'T', transb = p->b_column == 1 ? 'N' : 'T';
  const int64_t rows = by_rows ? count : p->rows, columns = by_rows ? p->columns : count;
  const int64_t a_step = p->a_column == 1 ? p->a_row : p->a_column, b_step = p->b_column == 1 ? p->b_row : p->b_column;
  const float beta = p->accumulate ? 1.0f : 0.0f;
  at.y += first * (by_rows ? p->y_row : 1);
  at.a += by_rows ? first * p->a_row : 0;
  at.b += by_rows ? 0 : first * p->b_column;
  if (p->type == ACCEL_F32)
    return dnnl_sgemm(transa, transb, rows, columns, p->depth, 1.0f, (const float *)a + at.a, a_step,
                      (const float *)b + at.b, b_step, beta, y + at.y, p->y_row);
  return rt_gemm_bfloat16(transa, transb, rows, columns, p->depth, (const uint16_t *)a + at.a, a_step,
                          (const uint16_t *)b + at.b, b_step, beta, y + at.y, p->y_row);
}

/* In parts each thread takes whole registers of columns or rows: oneDNN has one thread within a parallel region. */
static void multiply_by_gemm(const struct accel_gemm *p, float *y, const void *a, const void *b) {
  enum { REGISTER = 16 };
  const int64_t all = p->rows > p->columns ? p->rows : p->columns, registers = (all + REGISTER - 1) / REGISTER;
#pragma omp parallel if (p->in_parts)
  {
    const int64_t threads = omp_get_num_threads(), thread = omp_get_thread_num();
    const int64_t first = registers * thread / threads * REGISTER;
    const int64_t last = rt_least(registers * (thread + 1) / threads * REGISTER, all);
    for (int64_t matrix = 0; matrix < matrices_of(p) && first < last; matrix++)
      rt_onednn_note(multiply_part(p, begins_of(p, matrix), y, a, b, first, last - first));
  }
}

/* ---- All ---- */

bool accel_open_gemm(struct accel_gemm *gemm) {
  const bool floats = gemm->type == ACCEL_F32;
  if (gemm->in_blocks) return true;
  gemm->packed = rt_open_packed(gemm);
  if (floats && (gemm->in_parts || gemm->weights > 0)) return true;
  gemm->primitive = make_primitive(gemm);
  gemm->in_parts = gemm->in_parts && gemm->primitive != NULL && gemm->type == ACCEL_BF16 && gemm->result == ACCEL_F32 &&
                   rt_has_gemm_bfloat16();
  return gemm->primitive != NULL || floats;
}

static void multiply_by_primitive(const struct accel_primitive *primitive, void *y, const void *a, const void *b) {
  const dnnl_exec_arg_t arguments[] = {
      {DNNL_ARG_SRC, primitive->a}, {DNNL_ARG_WEIGHTS, primitive->b}, {DNNL_ARG_DST, primitive->y}};
  rt_onednn_note(dnnl_memory_set_data_handle(primitive->a, (void *)(uintptr_t)a));
  rt_onednn_note(dnnl_memory_set_data_handle(primitive->b, (void *)(uintptr_t)b));
  rt_onednn_note(dnnl_memory_set_data_handle(primitive->y, y));
  rt_onednn_note(dnnl_primitive_execute(primitive->primitive, primitive->stream, 3, arguments));
}

void accel_multiply(const struct accel_gemm *gemm, void *y, const void *a, const void *b) {
  const struct accel_primitive *primitive = gemm->primitive;
  if (gemm->packed != NULL && rt_multiply_packed(gemm, y, a, b)) return;
  if (gemm->in_parts || (primitive == NULL && gemm->type == ACCEL_F32))
    multiply_by_gemm(gemm, y, a, b);
  else if (primitive == NULL)
    emulate(gemm, y, a, b);
  else
    multiply_by_primitive(primitive, y, a, b);
}
