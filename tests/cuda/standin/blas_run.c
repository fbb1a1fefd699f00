/* What a matmul of cuBLASLt's computes, in double, and which memory it touches. */
#include "tests/cuda/standin/blas.h"
#include "tests/cuda/standin/core.h"

#include "runtime/base/half.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The number of a code: a sign, an exponent, so many bits of mantissa. */
static double widen_fp8(uint8_t code, int mantissa, int bias) {
  int size = code & 0x7f, exponent = size >> mantissa, rest = size & ((1 << mantissa) - 1);
  double value =
      exponent > 0 ? ldexp(rest + (1 << mantissa), exponent - bias - mantissa) : ldexp(rest, 1 - bias - mantissa);
  bool is_number = mantissa == 3 ? size < 0x7f : exponent < 0x1f;
  return is_number ? copysign(value, code & 0x80 ? -1.0 : 1.0) : NAN;
}

static double value_at(const void *base, cudaDataType type, int64_t at) {
  if (type == CUDA_R_32F) return ((const float *)base)[at];
  if (type == CUDA_R_8F_E4M3) return widen_fp8(((const uint8_t *)base)[at], 3, 7);
  if (type == CUDA_R_8F_E5M2) return widen_fp8(((const uint8_t *)base)[at], 2, 15);
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

static double epilogue(const struct matmul *p, int64_t n, int64_t i, int64_t j, double sum) {
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
static void leave_sums(const struct matmul *p, const double *a, const double *b, const double *d) {
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

static void multiply_one(const struct matmul *p, int64_t batch) {
  const struct choice *of = &p->of;
  int64_t m = of->d.rows, n = of->d.columns, depth = depth_of(of);
  const double scale = is_fp8(of->a.type) ? (double)of->what.a_scale[0] * (double)of->what.b_scale[0] : 1.0;
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
      sum = p->alpha * scale * sum + (p->beta != 0.0f ? p->beta * value_at(p->d, of->d.type, at) : 0.0);
      d[j * m + i] = epilogue(p, batch, i, j, sum);
      put_at(p->d, of->d.type, at, d[j * m + i]);
    }
  leave_sums(p, a, b, d);
  free(a);
  free(b);
  free(d);
}

void blas_run_matmul(const void *arguments) {
  const struct matmul *p = arguments;
  const struct description *what = &p->of.what;
  struct matrix aux = p->of.d;
  aux.ld = what->aux_row;
  aux.step = what->aux_step;
  touch_matrix(p->a, &p->of.a, false);
  touch_matrix(p->b, &p->of.b, false);
  if (is_fp8(p->of.a.type)) {
    touch(what->a_scale, sizeof(float), false);
    touch(what->b_scale, sizeof(float), false);
  }
  if (p->beta != 0.0f) touch_matrix(p->d, &p->of.d, false);
  touch_matrix(p->d, &p->of.d, true);
  if (uses(what, BIAS_FLAG)) touch(what->bias, (size_t)p->of.d.rows * width(p->of.d.type), false);
  if (uses(what, AUX_FLAG) && !masks(what)) touch_matrix(what->aux, &aux, uses(what, GELU_FLAG));
  if (masks(what))
    touch(what->aux, (size_t)((p->of.d.batch - 1) * aux.step + p->of.d.columns * aux.ld) / 8, uses(what, RELU_FLAG));
  /* Its beginning speaks for all of it, which may be tens of MiB for each of many small matmuls. */
  touch(p->workspace, p->workspace_bytes < 4096 ? p->workspace_bytes : 4096, true);
  for (int64_t n = 0; n < p->of.a.batch; n++) multiply_one(p, n);
  matmuls_time += algorithm_time(&p->algorithm);
}
