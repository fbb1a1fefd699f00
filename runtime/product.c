#include "product.h"

#include "half.h"
#include "problem.h"

#include <oneapi/dnnl/dnnl.h>
#include <stdlib.h>
#include <string.h>

struct accel_primitive {
  dnnl_primitive_t primitive;
  dnnl_stream_t stream;
  dnnl_memory_t a, b, y;
};

static int status;

int accel_products_status(void) {
  return status;
}

void accel_note(const char *what) {
  rt_warn("%s", what);
}

static void note(dnnl_status_t found) {
#pragma omp atomic
  status |= (int)found;
}

/* ---- oneDNN's primitives, of its versions 2 and 3 ---- */

static const dnnl_data_type_t types[] = {dnnl_f32, dnnl_bf16, dnnl_f16};

#if DNNL_VERSION_MAJOR >= 3
typedef dnnl_memory_desc_t description;
static dnnl_status_t describe(description *to, int rank, const dnnl_dims_t shape, dnnl_data_type_t type,
                              const dnnl_dims_t steps) {
  return dnnl_memory_desc_create_with_strides(to, rank, shape, type, steps);
}
static void forget(description *description) {
  dnnl_memory_desc_destroy(*description);
}
static dnnl_status_t choose(dnnl_primitive_desc_t *to, dnnl_engine_t engine, const description matrices[3],
                            dnnl_primitive_attr_t attributes) {
  return dnnl_matmul_primitive_desc_create(to, engine, matrices[0], matrices[1], NULL, matrices[2], attributes);
}
static dnnl_status_t add_sum(dnnl_post_ops_t to) {
  return dnnl_post_ops_append_sum(to, 1.0f, 0, dnnl_data_type_undef);
}
static dnnl_status_t make_memory(dnnl_memory_t *to, const description *description, dnnl_engine_t engine) {
  return dnnl_memory_create(to, *description, engine, DNNL_MEMORY_NONE);
}
#else
typedef dnnl_memory_desc_t description;
static dnnl_status_t describe(description *to, int rank, const dnnl_dims_t shape, dnnl_data_type_t type,
                              const dnnl_dims_t steps) {
  return dnnl_memory_desc_init_by_strides(to, rank, shape, type, steps);
}
static void forget(description *description) {
  (void)description;
}
static dnnl_status_t choose(dnnl_primitive_desc_t *to, dnnl_engine_t engine, const description matrices[3],
                            dnnl_primitive_attr_t attributes) {
  dnnl_matmul_desc_t matmul;
  dnnl_status_t made = dnnl_matmul_desc_init(&matmul, &matrices[0], &matrices[1], NULL, &matrices[2]);
  return made != dnnl_success ? made : dnnl_primitive_desc_create(to, &matmul, attributes, engine, NULL);
}
static dnnl_status_t add_sum(dnnl_post_ops_t to) {
  return dnnl_post_ops_append_sum(to, 1.0f);
}
static dnnl_status_t make_memory(dnnl_memory_t *to, const description *description, dnnl_engine_t engine) {
  return dnnl_memory_create(to, description, engine, DNNL_MEMORY_NONE);
}
#endif

/* a, b and y as oneDNN sees them: the batch, then rows and columns. */
static dnnl_status_t describe_all(const struct accel_product *p, description matrices[3]) {
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
    dnnl_status_t made = describe(&matrices[m], rank, shape, types[m == 2 ? p->result : p->type], steps);
    if (made != dnnl_success) return made;
  }
  return dnnl_success;
}

/* The best way that oneDNN has for the product; NULL when that is only its portable one. */
static dnnl_primitive_desc_t chosen(const struct accel_product *p, dnnl_engine_t engine,
                                    const description matrices[3]) {
  dnnl_primitive_attr_t attributes;
  dnnl_post_ops_t sums;
  if (dnnl_primitive_attr_create(&attributes) != dnnl_success) return NULL;
  if (dnnl_post_ops_create(&sums) != dnnl_success) return NULL;
  if (p->accumulate) add_sum(sums);
  dnnl_primitive_attr_set_post_ops(attributes, sums);
  dnnl_primitive_desc_t found = NULL;
  if (choose(&found, engine, matrices, attributes) != dnnl_success) found = NULL;
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

/* NULL when the processor has nothing for the product. */
static struct accel_primitive *make_primitive(const struct accel_product *p, dnnl_engine_t engine,
                                              dnnl_stream_t stream) {
  description matrices[3];
  if (describe_all(p, matrices) != dnnl_success) return NULL;
  dnnl_primitive_desc_t found = chosen(p, engine, matrices);
  struct accel_primitive *made = found != NULL ? calloc(1, sizeof *made) : NULL;
  if (made != NULL) {
    made->stream = stream;
    bool whole = dnnl_primitive_create(&made->primitive, found) == dnnl_success &&
                 make_memory(&made->a, &matrices[0], engine) == dnnl_success &&
                 make_memory(&made->b, &matrices[1], engine) == dnnl_success &&
                 make_memory(&made->y, &matrices[2], engine) == dnnl_success;
    if (!whole) {
      free(made);
      made = NULL;
    }
  }
  if (found != NULL) dnnl_primitive_desc_destroy(found);
  for (int m = 0; m < 3; m++) forget(&matrices[m]);
  return made;
}

bool accel_open_product(struct accel_product *product) {
  static dnnl_engine_t engine;
  static dnnl_stream_t stream;
  if (engine == NULL && (dnnl_engine_create(&engine, dnnl_cpu, 0) != dnnl_success ||
                         dnnl_stream_create(&stream, engine, dnnl_stream_default_flags) != dnnl_success)) {
    struct problem problem;
    rt_problem(&problem, "oneDNN cannot start; is it built for this processor?");
    rt_fail(&problem, 1);
  }
  if (product->in_blocks) return true;
  product->primitive = make_primitive(product, engine, stream);
  return product->primitive != NULL;
}

/* ---- In float32, block by block ---- */

enum { ROWS = 128, COLUMNS = 128, DEPTH = 256 };

#if defined __x86_64__ && defined __GNUC__ && !defined __SANITIZE_ADDRESS__
#define FOR_EACH_PROCESSOR __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define FOR_EACH_PROCESSOR
#endif

/* to[rows][columns] = the elements of `from`, `row` and `column` elements apart; `row` lines follow each other. */
FOR_EACH_PROCESSOR static void widen_lines(enum accel_element type, float *to, int64_t to_line, const uint16_t *from,
                                           int64_t line, int64_t lines, int64_t length) {
  for (int64_t i = 0; i < lines; i++) {
    float *restrict out = to + i * to_line;
    const uint16_t *restrict in = from + i * line;
    if (type == ACCEL_BF16)
#pragma omp simd
      for (int64_t j = 0; j < length; j++) out[j] = rt_widen_bfloat16(in[j]);
    else
#pragma omp simd
      for (int64_t j = 0; j < length; j++) out[j] = rt_widen_float16(in[j]);
  }
}

FOR_EACH_PROCESSOR static void store_lines(enum accel_element type, bool accumulate, void *to, int64_t line,
                                           const float *from, int64_t from_line, int64_t lines, int64_t length) {
  for (int64_t i = 0; i < lines; i++) {
    const float *restrict in = from + i * from_line;
    float *restrict wide = (float *)to + i * line;
    uint16_t *restrict low = (uint16_t *)to + i * line;
    if (type == ACCEL_F32)
#pragma omp simd
      for (int64_t j = 0; j < length; j++) wide[j] = accumulate ? wide[j] + in[j] : in[j];
    else if (type == ACCEL_BF16)
#pragma omp simd
      for (int64_t j = 0; j < length; j++)
        low[j] = rt_narrow_bfloat16(accumulate ? rt_widen_bfloat16(low[j]) + in[j] : in[j]);
    else
#pragma omp simd
      for (int64_t j = 0; j < length; j++)
        low[j] = rt_narrow_float16(accumulate ? rt_widen_float16(low[j]) + in[j] : in[j]);
  }
}

static int64_t least(int64_t a, int64_t b) {
  return a < b ? a : b;
}

/* One block of y, from row r and column c on. */
static void multiply_block(const struct accel_product *p, void *y, const uint16_t *a, const uint16_t *b, int64_t r,
                           int64_t c) {
  _Alignas(64) float left[ROWS * DEPTH], right[DEPTH * COLUMNS], sum[ROWS * COLUMNS];
  int64_t rows = least(ROWS, p->rows - r), columns = least(COLUMNS, p->columns - c);
  bool a_lines = p->a_column == 1, b_lines = p->b_column == 1; /* by rows, or by columns */
  for (int64_t k = 0; k < p->depth; k += DEPTH) {
    int64_t depth = least(DEPTH, p->depth - k);
    const uint16_t *from_a = a + r * p->a_row + k * p->a_column, *from_b = b + k * p->b_row + c * p->b_column;
    widen_lines(p->type, left, a_lines ? DEPTH : ROWS, from_a, a_lines ? p->a_row : p->a_column, a_lines ? rows : depth,
                a_lines ? depth : rows);
    widen_lines(p->type, right, b_lines ? COLUMNS : DEPTH, from_b, b_lines ? p->b_row : p->b_column,
                b_lines ? depth : columns, b_lines ? columns : depth);
    note(dnnl_sgemm(a_lines ? 'N' : 'T', b_lines ? 'N' : 'T', rows, columns, depth, 1.0f, left, a_lines ? DEPTH : ROWS,
                    right, b_lines ? COLUMNS : DEPTH, k > 0 ? 1.0f : 0.0f, sum, COLUMNS));
  }
  char *place = (char *)y + (r * p->y_row + c) * (p->result == ACCEL_F32 ? 4 : 2);
  store_lines(p->result, p->accumulate, place, p->y_row, sum, COLUMNS, rows, columns);
}

static void emulate(const struct accel_product *p, void *y, const uint16_t *a, const uint16_t *b) {
  int64_t matrices = 1, down = (p->rows + ROWS - 1) / ROWS, across = (p->columns + COLUMNS - 1) / COLUMNS;
  for (int i = 0; i < p->batch_rank; i++) matrices *= p->batch[i];
#pragma omp parallel for
  for (int64_t block = 0; block < matrices * down * across; block++) {
    int64_t rest = block / (down * across), to = 0, from_a = 0, from_b = 0;
    for (int i = p->batch_rank - 1; i >= 0; i--) {
      int64_t at = rest % p->batch[i];
      rest /= p->batch[i];
      to += at * p->y_step[i];
      from_a += at * p->a_step[i];
      from_b += at * p->b_step[i];
    }
    char *matrix = (char *)y + to * (p->result == ACCEL_F32 ? 4 : 2);
    multiply_block(p, matrix, a + from_a, b + from_b, block / across % down * ROWS, block % across * COLUMNS);
  }
}

void accel_multiply(const struct accel_product *product, void *y, const void *a, const void *b) {
  const struct accel_primitive *primitive = product->primitive;
  if (primitive == NULL) {
    emulate(product, y, a, b);
    return;
  }
  const dnnl_exec_arg_t arguments[] = {
      {DNNL_ARG_SRC, primitive->a}, {DNNL_ARG_WEIGHTS, primitive->b}, {DNNL_ARG_DST, primitive->y}};
  note(dnnl_memory_set_data_handle(primitive->a, (void *)(uintptr_t)a));
  note(dnnl_memory_set_data_handle(primitive->b, (void *)(uintptr_t)b));
  note(dnnl_memory_set_data_handle(primitive->y, y));
  note(dnnl_primitive_execute(primitive->primitive, primitive->stream, 3, arguments));
}
