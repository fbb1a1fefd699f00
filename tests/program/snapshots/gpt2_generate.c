/* gpt2: a program that writes text with one trained model, written by accel-gen 0.1.0.
 *
 * job    job.yaml, e62fa2e7a1ae3a95c4ddf305651a144945474ee97b2ee0dba127159c7b6e85de
 * model     gpt2.c: 2 layers, 3,840 parameters
 * token     4 places, 31.3 kFLOP (products 93 %)
 * memory    0.0 MiB: weights 0.0, scratch 0.0
 * traffic   none (1 rank)
 *
 * Build: cc -std=c17 -O3 -march=native -fopenmp generate.c -o generate $(pkg-config --cflags --libs accel-runtime) */
#include <accel/generator.h>
#include <assert.h>
#include <math.h>
#include <oneapi/dnnl/dnnl.h>
#include <stdalign.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* ---- The arena's map ----
 *
 * Arrays are flat and row-major: [rows * columns]. A comment gives the shape where that does not. */

struct attend_weights {
  alignas(64) float c_attn_weight[8 * 24];
  alignas(64) float c_attn_bias[24];
  alignas(64) float c_proj_weight[8 * 8];
  alignas(64) float c_proj_bias[8];
};
static_assert(sizeof(struct attend_weights) == 1216, "as planned");

struct mlp_weights {
  alignas(64) float c_fc_weight[8 * 32];
  alignas(64) float c_fc_bias[32];
  alignas(64) float c_proj_weight[32 * 8];
  alignas(64) float c_proj_bias[8];
};
static_assert(sizeof(struct mlp_weights) == 2240, "as planned");

struct block_weights {
  alignas(64) float ln_1_weight[8];
  alignas(64) float ln_1_bias[8];
  alignas(64) float ln_2_weight[8];
  alignas(64) float ln_2_bias[8];
  struct attend_weights attn;
  struct mlp_weights mlp;
};
static_assert(sizeof(struct block_weights) == 3712, "as planned");

struct predict_weights {
  alignas(64) float wpe_weight[4 * 8];
  alignas(64) float wte_weight[256 * 8];
  alignas(64) float ln_f_weight[8];
  alignas(64) float ln_f_bias[8];
  struct block_weights h[2];
};
static_assert(sizeof(struct predict_weights) == 15872, "as planned");

/* What attend_forward needs while it runs. */
struct attend_forward_scratch {
  alignas(64) float matmul[4 * 24]; /* [1][4][24] */
  alignas(64) float reshape[4 * 8]; /* [1][4][8] */
  alignas(64) float y_lse[2 * 4];   /* [1][2][4] */
};
static_assert(sizeof(struct attend_forward_scratch) == 576, "as planned");

/* What mlp_forward needs while it runs. */
struct mlp_forward_scratch {
  alignas(64) float matmul[4 * 32]; /* [1][4][32] */
};
static_assert(sizeof(struct mlp_forward_scratch) == 512, "as planned");

/* What block_forward needs while it runs; members of a union are never in use together. */
struct block_forward_scratch {
  union {
    alignas(64) float layer_norm_mean[4];
    alignas(64) float layer_norm_2_mean[4];
    struct attend_forward_scratch attend_forward;
    struct mlp_forward_scratch mlp_forward;
  };
  union {
    alignas(64) float layer_norm[4 * 8];   /* [1][4][8] */
    alignas(64) float layer_norm_2[4 * 8]; /* [1][4][8] */
  };
  union {
    alignas(64) float m[4 * 8]; /* [1][4][8] */
    alignas(64) float layer_norm_rstd[4];
    alignas(64) float layer_norm_2_rstd[4];
  };
};
static_assert(sizeof(struct block_forward_scratch) == 832, "as planned");

/* What predict_forward needs while it runs; members of a union are never in use together. */
struct predict_forward_scratch {
  alignas(64) float x_of_block[2][32];
  alignas(64) float x_4_mean[4];
  alignas(64) float x_4_rstd[4];
  union {
    alignas(64) float x[4 * 8];   /* [1][4][8] */
    alignas(64) float x_4[4 * 8]; /* [1][4][8] */
    struct block_forward_scratch block_forward;
  };
};
static_assert(sizeof(struct predict_forward_scratch) == 1216, "as planned");

struct arena {
  struct predict_weights weights;
  alignas(64) int32_t tokens[4];     /* [1][4] */
  alignas(64) float result[4 * 256]; /* the logits, [1][4][256] */
  struct {
    struct predict_forward_scratch forward;
  } scratch;
};
static_assert(sizeof(struct arena) == 21248, "as planned");

static struct arena *arena;

/* ---- Kernels ---- */

/* c = a b + beta c by oneDNN, which fails only where its packing finds no memory. A step does not stop for that: main
 * looks at the status between steps. */
static int product_status;
static inline void accel_product(char a_lies, char b_lies, int64_t rows, int64_t columns, int64_t depth, const float *a,
                                 int64_t a_step, const float *b, int64_t b_step, float beta, float *c, int64_t c_step) {
  const int status = (int)dnnl_sgemm(a_lies, b_lies, rows, columns, depth, 1.0f, a, a_step, b, b_step, beta, c, c_step);
#pragma omp atomic
  product_status |= status;
}

/* e^x: x = n ln 2 + r (Cody and Waite 1980), e^r by a minimax polynomial, 2^n added to the exponent's bits. Within
 * 1.1 ulp; 0 where the result would not be a normal number, infinity above the largest. */
static inline float accel_exp(float x) {
  const float lowest = -87.33654f, highest = 88.72283f, to_integer = 12582912.0f;
  float inside = lowest > x ? lowest : x;
  inside = highest < inside ? highest : inside;
  const float shifted = inside * 1.44269504f + to_integer;
  const float n = shifted - to_integer;
  const float r = (inside - n * 0.693359375f) + n * 2.12194440e-4f;
  float p = 0.00138144663f;
  p = p * r + 0.00836878047f;
  p = p * r + 0.0416683942f;
  p = p * r + 0.166665201f;
  p = p * r + 0.499999934f;
  float y = (p * (r * r) + r) + 1.0f;
  uint32_t bits, exponent;
  memcpy(&bits, &y, sizeof bits);
  memcpy(&exponent, &shifted, sizeof exponent);
  bits += exponent << 23;
  memcpy(&y, &bits, sizeof y);
  y = x < lowest ? 0.0f : y;
  return x <= highest ? y : x + INFINITY; /* a NaN stays one */
}

/* ln x: x = 2^n (1 + f) with 1 + f in [sqrt(1/2), sqrt(2)), ln(1 + f) by a minimax polynomial. Within 1.5 ulp. */
static inline float accel_log(float x) {
  const float normal = x < 1.17549435e-38f ? x * 8388608.0f : x;
  uint32_t bits;
  memcpy(&bits, &normal, sizeof bits);
  const int32_t n = (int32_t)(bits - 0x3f3504f3u) >> 23;
  bits -= (uint32_t)n << 23;
  float f;
  memcpy(&f, &bits, sizeof f);
  f -= 1.0f;
  float p = 0.067466408f;
  p = p * f - 0.11675652f;
  p = p * f + 0.118881623f;
  p = p * f - 0.124055889f;
  p = p * f + 0.142195524f;
  p = p * f - 0.166679959f;
  p = p * f + 0.200021187f;
  p = p * f - 0.250000096f;
  p = p * f + 0.333333126f;
  const float exponent = (float)n - (x < 1.17549435e-38f ? 23.0f : 0.0f);
  const float small = exponent * -2.12194440e-4f + f * f * (p * f - 0.5f);
  float y = (small + f) + exponent * 0.693359375f;
  y = x < INFINITY ? y : x; /* a NaN stays one */
  y = x == 0.0f ? -INFINITY : y;
  return x < 0.0f ? NAN : y;
}

/* A vector register of floats, loaded from anywhere, and the rows and columns of a product that registers hold. */
#if defined __AVX512F__
typedef float accel_lanes __attribute__((vector_size(64), aligned(4), may_alias));
enum { ACCEL_LANES = 16, ACCEL_TILE_ROWS = 8, ACCEL_TILE_COLUMNS = 32 };
#elif defined __AVX__
typedef float accel_lanes __attribute__((vector_size(32), aligned(4), may_alias));
enum { ACCEL_LANES = 8, ACCEL_TILE_ROWS = 4, ACCEL_TILE_COLUMNS = 16 };
#else
typedef float accel_lanes __attribute__((vector_size(16), aligned(4), may_alias));
enum { ACCEL_LANES = 4, ACCEL_TILE_ROWS = 4, ACCEL_TILE_COLUMNS = 16 };
#endif

/* c[rows][columns] (+)= a[rows][depth] b[depth][columns] with rows and columns that registers hold. */
static inline __attribute__((always_inline)) void accel_small_tile(int rows, int columns, bool add, size_t depth,
                                                                   const float *a, size_t a_row, size_t a_step,
                                                                   const float *b, size_t b_row, float *c,
                                                                   size_t c_row) {
  accel_lanes sum[ACCEL_TILE_ROWS][ACCEL_TILE_COLUMNS / ACCEL_LANES];
#pragma GCC unroll 8
  for (int i = 0; i < rows; i++)
#pragma GCC unroll 8
    for (int j = 0; j < columns / ACCEL_LANES; j++)
      sum[i][j] = add ? *(const accel_lanes *)(c + (size_t)i * c_row + j * ACCEL_LANES) : (accel_lanes){0.0f};
  for (size_t t = 0; t < depth; t++)
#pragma GCC unroll 8
    for (int i = 0; i < rows; i++)
#pragma GCC unroll 8
      for (int j = 0; j < columns / ACCEL_LANES; j++)
        sum[i][j] += a[(size_t)i * a_row + t * a_step] * *(const accel_lanes *)(b + t * b_row + j * ACCEL_LANES);
#pragma GCC unroll 8
  for (int i = 0; i < rows; i++)
#pragma GCC unroll 8
    for (int j = 0; j < columns / ACCEL_LANES; j++)
      *(accel_lanes *)(c + (size_t)i * c_row + j * ACCEL_LANES) = sum[i][j];
}

/* The same for up to 8 rows and for 16 or 32 columns; a[i][t] is a[i * a_row + t * a_step]. rows, columns and add are
 * constants where it is inlined. */
static inline __attribute__((always_inline)) void accel_tile(int rows, int columns, bool add, size_t depth,
                                                             const float *a, size_t a_row, size_t a_step,
                                                             const float *b, size_t b_row, float *c, size_t c_row) {
#pragma GCC unroll 2
  for (int i = 0; i < rows; i += ACCEL_TILE_ROWS)
#pragma GCC unroll 2
    for (int j = 0; j < columns; j += ACCEL_TILE_COLUMNS)
      accel_small_tile(rows - i < ACCEL_TILE_ROWS ? rows - i : ACCEL_TILE_ROWS,
                       columns - j < ACCEL_TILE_COLUMNS ? columns - j : ACCEL_TILE_COLUMNS, add, depth,
                       a + (size_t)i * a_row, a_row, a_step, b + j, b_row, c + (size_t)i * c_row + j, c_row);
}

/* to[c][r] = factor from[r][c] for 16 rows and columns. With 16 lanes: each of four rounds shuffles rows r and r + 8,
 * like cards, which turns the eight bits of an element's place by one. */
static inline void accel_transpose(float factor, const float *from, size_t from_row, float *to, size_t to_row) {
#if defined __AVX512F__
  accel_lanes x[16], y[16];
#pragma GCC unroll 16
  for (int r = 0; r < 16; r++) x[r] = factor * *(const accel_lanes *)(from + (size_t)r * from_row);
#pragma GCC unroll 4
  for (int round = 0; round < 4; round++) {
#pragma GCC unroll 8
    for (int r = 0; r < 8; r++) {
      y[2 * r] = __builtin_shufflevector(x[r], x[r + 8], 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
      y[2 * r + 1] =
          __builtin_shufflevector(x[r], x[r + 8], 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
    }
#pragma GCC unroll 16
    for (int r = 0; r < 16; r++) x[r] = y[r];
  }
#pragma GCC unroll 16
  for (int r = 0; r < 16; r++) *(accel_lanes *)(to + (size_t)r * to_row) = x[r];
#else
  for (size_t c = 0; c < 16; c++)
    for (size_t r = 0; r < 16; r++) to[c * to_row + r] = factor * from[r * from_row + c];
#endif
}

/* 1 / (1 + e^-x). */
static inline float accel_sigmoid(float x) {
  return 1.0f / (1.0f + accel_exp(-x));
}

/* (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2: what x is multiplied by in the tanh form of gelu. */
static inline float accel_gelu_gate(float x) {
  return accel_sigmoid(x * (1.59576912f + 0.0713548163f * x * x));
}

/* y = a b: [4][8] x [8][24]. */
static void matmul_1x4x8x24(float y[static 4 * 24], const float a[static 4 * 8], const float b[static 8 * 24]) {
  accel_product('N', 'N', 4, 24, 8, a, 8, b, 24, 0.0f, y, 24);
}

static void add_1x4x24(float y[static 4 * 24], const float x0[static 4 * 24], const float x1[static 24]) {
  for (size_t i = 0; i < 4; i++)
#pragma omp simd
    for (size_t j = 0; j < 24; j++) {
      const float v0 = x0[i * 24 + j];
      const float v1 = x1[j];
      const float t0 = v0 + v1;
      y[i * 24 + j] = t0;
    }
}

/* y = softmax(0.5 q k^T, causal) v, lse = ln of the sum of e^scores. */
static void attention_1x2x4x4(float y[static 32], float lse[static 2 * 4], const float q[static 80],
                              const float k[static 80], const float v[static 80]) {
#pragma omp parallel for collapse(3)
  for (size_t b = 0; b < 1; b++)
    for (size_t h = 0; h < 2; h++)
      for (size_t first = 0; first < 4; first += 32) {
        const float *qh = q + b * 0 + h * 4, *kh = k + b * 0 + h * 4;
        const float *vh = v + b * 0 + h * 4;
        float *yh = y + b * 0 + h * 4;
        const size_t queries = 4 - first < 32 ? 4 - first : 32;
        float rows[32][16] = {0}, qt[16][32], p[4][32], o[32][16] = {0}, highest[32], sum[32];
        for (size_t i = 0; i < queries; i++) memcpy(rows[i], qh + (first + i) * 24, 4 * sizeof(float));
        for (size_t d = 0; d < 16; d += 16)
          for (size_t i = 0; i < 32; i += 16) accel_transpose(0.5f, &rows[i][d], 16, &qt[d][i], 32);
        for (size_t i = 0; i < 32; i++) {
          highest[i] = -INFINITY;
          sum[i] = 0.0f;
        }
        const size_t keys = first + 32 < 4 ? first + 32 : 4;
        {
          const size_t start = 0, count = keys;
          const size_t diagonal = first - start; /* query i sees the block's keys up to diagonal + i */
          const size_t wide = diagonal + 16 < count ? diagonal + 16 : count;
          const float *kb = kh + start * 24, *vb = vh + start * 24;
          size_t j;
          for (j = 0; j + 8 <= wide; j += 8) accel_tile(8, 32, false, 4, kb + j * 24, 24, 1, qt[0], 32, p[j], 32);
          for (; j + 8 <= count; j += 8) accel_tile(8, 16, false, 4, kb + j * 24, 24, 1, &qt[0][16], 32, &p[j][16], 32);
          if (j < count) accel_tile(4, 32, false, 4, kb + j * 24, 24, 1, qt[0], 32, p[j], 32);
          for (j = diagonal; j < count; j++)
            for (size_t i = 0; i < j - diagonal; i++) p[j][i] = -INFINITY;
          for (j = 0; j < count; j++)
#pragma omp simd
            for (size_t i = 0; i < 32; i++) highest[i] = p[j][i] > highest[i] ? p[j][i] : highest[i];
          for (j = 0; j < count; j++)
#pragma omp simd
            for (size_t i = 0; i < 32; i++) {
              const float e = accel_exp(p[j][i] - highest[i]);
              p[j][i] = e;
              sum[i] += e;
            }
          float vp[4][16] = {0};
          for (j = 0; j < count; j++) memcpy(vp[j], vb + j * 24, 4 * sizeof(float));
          for (size_t i = 0; i < 32; i += 8) {
            const size_t seen = diagonal + i + 8 < count ? diagonal + i + 8 : count;
            accel_tile(8, 16, true, seen, &p[0][i], 1, 32, vp[0], 16, &o[i][0], 16);
          }
        }
#pragma omp simd
        for (size_t i = 0; i < 32; i++) {
          highest[i] += accel_log(sum[i]);
          sum[i] = 1.0f / sum[i];
        }
        memcpy(lse + (b * 2 + h) * 4 + first, highest, queries * sizeof(float));
        for (size_t i = 0; i < queries; i++)
          for (size_t d = 0; d < 4; d++) yh[(first + i) * 8 + d] = o[i][d] * sum[i];
      }
}

/* y = a b: [4][8] x [8][8]. */
static void matmul_1x4x8(float y[static 4 * 8], const float a[static 4 * 8], const float b[static 8 * 8]) {
  accel_product('N', 'N', 4, 8, 8, a, 8, b, 8, 0.0f, y, 8);
}

static void add_1x4x8(float y[static 4 * 8], const float x0[static 4 * 8], const float x1[static 8]) {
  for (size_t i = 0; i < 4; i++)
#pragma omp simd
    for (size_t j = 0; j < 8; j++) {
      const float v0 = x0[i * 8 + j];
      const float v1 = x1[j];
      const float t0 = v0 + v1;
      y[i * 8 + j] = t0;
    }
}

/* y = a b: [4][8] x [8][32]. */
static void matmul_1x4x8x32(float y[static 4 * 32], const float a[static 4 * 8], const float b[static 8 * 32]) {
  accel_product('N', 'N', 4, 32, 8, a, 8, b, 32, 0.0f, y, 32);
}

static void add_gelu_tanh_1x4x32(float y[static 4 * 32], const float x0[static 4 * 32], const float x1[static 32]) {
  for (size_t i = 0; i < 4; i++)
#pragma omp simd
    for (size_t j = 0; j < 32; j++) {
      const float v0 = x0[i * 32 + j];
      const float v1 = x1[j];
      const float t0 = v0 + v1;
      const float t1 = t0 * accel_gelu_gate(t0);
      y[i * 32 + j] = t1;
    }
}

/* y = a b: [4][32] x [32][8]. */
static void matmul_1x4x32x8(float y[static 4 * 8], const float a[static 4 * 32], const float b[static 32 * 8]) {
  accel_product('N', 'N', 4, 8, 32, a, 32, b, 8, 0.0f, y, 8);
}

/* y = (x - mean) rstd weight + bias, rstd = 1 / sqrt(variance + 1e-05), row by row. */
static void layer_norm_1x4x8(float y[static 4 * 8], float mean[static 4], float rstd[static 4],
                             const float x[static 4 * 8], const float weight[static 8], const float bias[static 8]) {
#pragma omp parallel for
  for (size_t r = 0; r < 4; r++) {
    const float *xr = x + r * 8;
    float *yr = y + r * 8;
    float sum = 0.0f;
#pragma omp simd reduction(+ : sum)
    for (size_t c = 0; c < 8; c++) sum += xr[c];
    const float m = sum / 8.0f;
    float squares = 0.0f;
#pragma omp simd reduction(+ : squares)
    for (size_t c = 0; c < 8; c++) squares += (xr[c] - m) * (xr[c] - m);
    const float s = 1.0f / sqrtf(squares / 8.0f + 1e-05f);
    mean[r] = m;
    rstd[r] = s;
#pragma omp simd
    for (size_t c = 0; c < 8; c++) yr[c] = (xr[c] - m) * s * weight[c] + bias[c];
  }
}

static void add_1x4x8_2(float y[static 4 * 8], const float x0[static 4 * 8], const float x1[static 4 * 8]) {
#pragma omp simd
  for (size_t i = 0; i < 32; i++) {
    const float v0 = x0[i];
    const float v1 = x1[i];
    const float t0 = v0 + v1;
    y[i] = t0;
  }
}

/* y[r][:] = weight[tokens[r]][:]. */
static void embedding_256x8(float y[static 4 * 8], const float weight[static 256 * 8], const int32_t tokens[static 4]) {
#pragma omp parallel for
  for (size_t r = 0; r < 4; r++) memcpy(y + r * 8, weight + (size_t)tokens[r] * 8, 8 * sizeof(float));
}

static void add_1x4x8_3(float y[static 4 * 8], const float x0[static 4 * 8], const float x1[static 4 * 8]) {
#pragma omp simd
  for (size_t i = 0; i < 32; i++) {
    const float v0 = x0[i];
    const float v1 = x1[i];
    const float t0 = v0 + v1;
    y[i] = t0;
  }
}

/* y = a b: [4][8] x [8][256]. */
static void matmul_1x4x8x256(float y[static 4 * 256], const float a[static 4 * 8], const float b[static 2048]) {
  accel_product('N', 'T', 4, 256, 8, a, 8, b, 8, 0.0f, y, 256);
}

/* ---- The model, function by function ---- */

/* attend, gpt2.c:33. */
static void attend_forward(const struct attend_weights *weights, struct attend_forward_scratch *scratch,
                           float add[static 4 * 8], const float x[static 4 * 8]) {
  matmul_1x4x8x24(scratch->matmul, x, weights->c_attn_weight);
  add_1x4x24(scratch->matmul, scratch->matmul, weights->c_attn_bias);
  attention_1x2x4x4(scratch->reshape, scratch->y_lse, scratch->matmul, scratch->matmul + 8, scratch->matmul + 16);
  matmul_1x4x8(add, scratch->reshape, weights->c_proj_weight);
  add_1x4x8(add, add, weights->c_proj_bias);
}

/* mlp, gpt2.c:39. */
static void mlp_forward(const struct mlp_weights *weights, struct mlp_forward_scratch *scratch,
                        float add_2[static 4 * 8], const float x[static 4 * 8]) {
  matmul_1x4x8x32(scratch->matmul, x, weights->c_fc_weight);
  add_gelu_tanh_1x4x32(scratch->matmul, scratch->matmul, weights->c_fc_bias);
  matmul_1x4x32x8(add_2, scratch->matmul, weights->c_proj_weight);
  add_1x4x8(add_2, add_2, weights->c_proj_bias);
}

/* block, gpt2.c:44. */
static void block_forward(const struct block_weights *weights, struct block_forward_scratch *scratch,
                          float add[static 4 * 8], const float x[static 4 * 8]) {
  layer_norm_1x4x8(scratch->layer_norm, scratch->layer_norm_mean, scratch->layer_norm_rstd, x, weights->ln_1_weight,
                   weights->ln_1_bias);
  attend_forward(&weights->attn, &scratch->attend_forward, add, scratch->layer_norm);
  add_1x4x8_2(add, x, add);
  layer_norm_1x4x8(scratch->layer_norm_2, scratch->layer_norm_2_mean, scratch->layer_norm_2_rstd, add,
                   weights->ln_2_weight, weights->ln_2_bias);
  mlp_forward(&weights->mlp, &scratch->mlp_forward, scratch->m, scratch->layer_norm_2);
  add_1x4x8_2(add, add, scratch->m);
}

/* predict, gpt2.c:52. */
static void predict_forward(const struct predict_weights *weights, struct predict_forward_scratch *scratch,
                            float matmul[static 4 * 256], const int32_t tokens[static 4]) {
  embedding_256x8(scratch->x, weights->wte_weight, tokens);
  add_1x4x8_3(scratch->x_of_block[0], scratch->x, weights->wpe_weight);
  for (int i = 0; i < 2; i++)
    block_forward(&weights->h[i], &scratch->block_forward, scratch->x_of_block[(i + 1) % 2],
                  scratch->x_of_block[i % 2]);
  layer_norm_1x4x8(scratch->x_4, scratch->x_4_mean, scratch->x_4_rstd, scratch->x_of_block[0], weights->ln_f_weight,
                   weights->ln_f_bias);
  matmul_1x4x8x256(matmul, scratch->x_4, weights->wte_weight);
}

/* The parameters by their published names: where they lie, how they start, their shape. */
#define PARAMETER(name, member, init, a, b, rank, ...)                                                                 \
  {name, offsetof(struct predict_weights, member), rank, {__VA_ARGS__}, ACCEL_##init, a, b, ACCEL_FLOAT32}
static const struct accel_tensor tensors[] = {
    PARAMETER("wpe.weight", wpe_weight, NORMAL, 0.0, 0.02, 2, 4, 8),
    PARAMETER("wte.weight", wte_weight, NORMAL, 0.0, 0.02, 2, 256, 8),
    PARAMETER("ln_f.weight", ln_f_weight, ONES, 0.0, 0.0, 1, 8),
    PARAMETER("ln_f.bias", ln_f_bias, ZEROS, 0.0, 0.0, 1, 8),
    PARAMETER("h.0.ln_1.weight", h[0].ln_1_weight, ONES, 0.0, 0.0, 1, 8),
    PARAMETER("h.0.ln_1.bias", h[0].ln_1_bias, ZEROS, 0.0, 0.0, 1, 8),
    PARAMETER("h.0.ln_2.weight", h[0].ln_2_weight, ONES, 0.0, 0.0, 1, 8),
    PARAMETER("h.0.ln_2.bias", h[0].ln_2_bias, ZEROS, 0.0, 0.0, 1, 8),
    PARAMETER("h.0.attn.c_attn.weight", h[0].attn.c_attn_weight, NORMAL, 0.0, 0.02, 2, 8, 24),
    PARAMETER("h.0.attn.c_attn.bias", h[0].attn.c_attn_bias, ZEROS, 0.0, 0.0, 1, 24),
    PARAMETER("h.0.attn.c_proj.weight", h[0].attn.c_proj_weight, NORMAL, 0.0, 0.01, 2, 8, 8),
    PARAMETER("h.0.attn.c_proj.bias", h[0].attn.c_proj_bias, ZEROS, 0.0, 0.0, 1, 8),
    PARAMETER("h.0.mlp.c_fc.weight", h[0].mlp.c_fc_weight, NORMAL, 0.0, 0.02, 2, 8, 32),
    PARAMETER("h.0.mlp.c_fc.bias", h[0].mlp.c_fc_bias, ZEROS, 0.0, 0.0, 1, 32),
    PARAMETER("h.0.mlp.c_proj.weight", h[0].mlp.c_proj_weight, NORMAL, 0.0, 0.01, 2, 32, 8),
    PARAMETER("h.0.mlp.c_proj.bias", h[0].mlp.c_proj_bias, ZEROS, 0.0, 0.0, 1, 8),
    PARAMETER("h.1.ln_1.weight", h[1].ln_1_weight, ONES, 0.0, 0.0, 1, 8),
    PARAMETER("h.1.ln_1.bias", h[1].ln_1_bias, ZEROS, 0.0, 0.0, 1, 8),
    PARAMETER("h.1.ln_2.weight", h[1].ln_2_weight, ONES, 0.0, 0.0, 1, 8),
    PARAMETER("h.1.ln_2.bias", h[1].ln_2_bias, ZEROS, 0.0, 0.0, 1, 8),
    PARAMETER("h.1.attn.c_attn.weight", h[1].attn.c_attn_weight, NORMAL, 0.0, 0.02, 2, 8, 24),
    PARAMETER("h.1.attn.c_attn.bias", h[1].attn.c_attn_bias, ZEROS, 0.0, 0.0, 1, 24),
    PARAMETER("h.1.attn.c_proj.weight", h[1].attn.c_proj_weight, NORMAL, 0.0, 0.01, 2, 8, 8),
    PARAMETER("h.1.attn.c_proj.bias", h[1].attn.c_proj_bias, ZEROS, 0.0, 0.0, 1, 8),
    PARAMETER("h.1.mlp.c_fc.weight", h[1].mlp.c_fc_weight, NORMAL, 0.0, 0.02, 2, 8, 32),
    PARAMETER("h.1.mlp.c_fc.bias", h[1].mlp.c_fc_bias, ZEROS, 0.0, 0.0, 1, 32),
    PARAMETER("h.1.mlp.c_proj.weight", h[1].mlp.c_proj_weight, NORMAL, 0.0, 0.01, 2, 32, 8),
    PARAMETER("h.1.mlp.c_proj.bias", h[1].mlp.c_proj_bias, ZEROS, 0.0, 0.0, 1, 8),
};

/* Tensors there that may be extra. */
static const char *const ignored[] = {
    "*",
};

static const struct accel_program program = {
    .name = "gpt2",
    .summary = "2 layers, 0.00 M parameters, float32",
    .job_digest = "e62fa2e7a1ae3a95c4ddf305651a144945474ee97b2ee0dba127159c7b6e85de",
    .generator = "accel-gen 0.1.0",
    .plan = "model     gpt2.c: 2 layers, 3,840 parameters\n"
            "token     4 places, 31.3 kFLOP (products 93 %)\n"
            "memory    0.0 MiB: weights 0.0, scratch 0.0\n"
            "traffic   none (1 rank)\n",
    .steps = 3,
    .seed = 11,
    .data_seed = 11,
    .batch_size = 3,
    .micro_batches = 1,
    .sync_with_dataloader = false,
    .tensors = tensors,
    .n_tensors = 28,
    .weights_bytes = sizeof(struct predict_weights),
    .arena_bytes = sizeof(struct arena),
    .threads = 0,
    .source = {{"corpus.txt", ACCEL_BYTES}, {NULL, ACCEL_BYTES}},
    .eval_fraction = 0.1,
    .shuffle = true,
    .prefetch = 2,
    .sequence_length = 4,
    .vocabulary = 256,
    .features = 0,
    .label_is_class = true,
    .classes = 0,
    .log_every = 10,
    .eval_every = 0,
    .save_every = 0,
    .eval_iters = 20,
    .project_dir = "run",
    .start = {.path = NULL, .ignored = ignored, .n_ignored = 1},
};

/* Each token is chosen from the logits behind the newest one. */
int main(int argc, char **argv) {
  struct accel_generation *run = accel_generation_start(&program, argc, argv);
  arena = accel_generation_arena(run);
  accel_generation_weights(run, &arena->weights);
  for (int64_t last; (last = accel_generation_window(run, arena->tokens)) >= 0;) {
    predict_forward(&arena->weights, &arena->scratch.forward, arena->result, arena->tokens);
    accel_generation_next(run, arena->result + last * 256, 256);
  }
  return accel_generation_finish(run);
}
