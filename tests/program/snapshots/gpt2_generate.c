/* gpt2: a program that writes text with one trained model, written by accel-gen 0.1.0.
 *
 * job    job.yaml, 23c1774997577463c6dedcb923b477ac65e2f501ae9a6847f192f786e1132b29
 * model     gpt2.c: 2 layers, 3,840 parameters
 * token     computes 1 of 4 positions, 7.82 kFLOP (products 93 %)
 * memory    0.0 MiB: weights 0.0, cache 0.0, scratch 0.0
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
  alignas(64) float k_cache[8 * 4]; /* [1][2][4][4] */
  alignas(64) float v_cache[8 * 4]; /* [1][2][4][4] */
};
static_assert(sizeof(struct attend_weights) == 1472, "as planned");

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
static_assert(sizeof(struct block_weights) == 3968, "as planned");

struct predict_weights {
  alignas(64) float wpe_weight[4 * 8];
  alignas(64) float wte_weight[256 * 8];
  alignas(64) float ln_f_weight[8];
  alignas(64) float ln_f_bias[8];
  struct block_weights h[2];
};
static_assert(sizeof(struct predict_weights) == 16384, "as planned");

/* What attend_forward needs while it runs. */
struct attend_forward_scratch {
  alignas(64) float matmul[4 * 24]; /* [1][4][24] */
  alignas(64) float reshape[4 * 8]; /* [1][4][8] */
};
static_assert(sizeof(struct attend_forward_scratch) == 512, "as planned");

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
static_assert(sizeof(struct block_forward_scratch) == 768, "as planned");

/* What predict_forward needs while it runs; members of a union are never in use together. */
struct predict_forward_scratch {
  alignas(64) float x_of_block[2][32];
  alignas(64) float x_4_rstd[4];
  union {
    alignas(64) float x[4 * 8];   /* [1][4][8] */
    alignas(64) float x_4[4 * 8]; /* [1][4][8] */
    struct block_forward_scratch block_forward;
  };
  union {
    alignas(64) float dynamic_slice[4 * 8];
    alignas(64) float x_4_mean[4];
  };
};
static_assert(sizeof(struct predict_forward_scratch) == 1216, "as planned");

/* What attend_step_forward needs while it runs. */
struct attend_step_forward_scratch {
  alignas(64) float matmul[24]; /* [1][1][24] */
  alignas(64) float y[2 * 4];   /* [1][2][1][4] */
};
static_assert(sizeof(struct attend_step_forward_scratch) == 192, "as planned");

/* What mlp_step_forward needs while it runs. */
struct mlp_step_forward_scratch {
  alignas(64) float matmul[32]; /* [1][1][32] */
};
static_assert(sizeof(struct mlp_step_forward_scratch) == 128, "as planned");

/* What block_step_forward needs while it runs; members of a union are never in use together. */
struct block_step_forward_scratch {
  union {
    alignas(64) float layer_norm_mean[1];
    alignas(64) float layer_norm_2_mean[1];
    struct attend_step_forward_scratch attend_step_forward;
    struct mlp_step_forward_scratch mlp_step_forward;
  };
  union {
    alignas(64) float layer_norm[8];   /* [1][1][8] */
    alignas(64) float layer_norm_2[8]; /* [1][1][8] */
  };
  union {
    alignas(64) float m[8]; /* [1][1][8] */
    alignas(64) float layer_norm_rstd[1];
    alignas(64) float layer_norm_2_rstd[1];
  };
};
static_assert(sizeof(struct block_step_forward_scratch) == 320, "as planned");

/* What predict_step_forward needs while it runs; members of a union are never in use together. */
struct predict_step_forward_scratch {
  alignas(64) float x_of_block_step[2][8];
  alignas(64) float x_4_rstd[1];
  union {
    alignas(64) float x[8];   /* [1][1][8] */
    alignas(64) float x_4[8]; /* [1][1][8] */
    struct block_step_forward_scratch block_step_forward;
  };
  union {
    alignas(64) float dynamic_slice[8]; /* [1][8] */
    alignas(64) float x_4_mean[1];
  };
};
static_assert(sizeof(struct predict_step_forward_scratch) == 512, "as planned");

struct arena {
  struct predict_weights weights;
  alignas(64) int32_t tokens[4]; /* [1][4] */
  alignas(64) int32_t at[1];
  alignas(64) float result[4 * 256]; /* the logits, [1][4][256] */
  union {
    struct predict_forward_scratch forward;
    struct predict_step_forward_scratch one;
  } scratch;
};
static_assert(sizeof(struct arena) == 21824, "as planned");

static struct arena *arena;

/* ---- Kernels ---- */

/* e^x for x up to 88.72283: x = n ln 2 + r (Cody and Waite 1980), e^r by a minimax polynomial, 2^n added to the
 * exponent's bits. Within 1.1 ulp; 0 where the result would not be a normal number; of a NaN, anything. */
static inline float accel_exp_finite(float x) {
  const float lowest = -87.33654f, to_integer = 12582912.0f;
  const float inside = lowest > x ? lowest : x;
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
  return x < lowest ? 0.0f : y;
}

/* e^x, infinity above the largest number. */
static inline float accel_exp(float x) {
  const float highest = 88.72283f, y = accel_exp_finite(highest < x ? highest : x);
  return x <= highest ? y : x + INFINITY; /* a NaN stays one */
}

/* 1 / (1 + e^-x). Within 3 ulp. */
static inline float accel_sigmoid(float x) {
  return 1.0f / (1.0f + accel_exp(-x));
}

/* (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2: what x is multiplied by in the tanh form of gelu. Within 1.8e-7. */
static inline float accel_gelu_gate(float x) {
  return accel_sigmoid(x * (1.59576912f + 0.0713548163f * x * x));
}

/* The sum of 16 numbers, the upper half added to the lower one and so on; they change. */
static inline float accel_sum_lanes(float lanes[static 16]) {
  for (size_t half = 8; half > 0; half /= 2)
#pragma omp simd
    for (size_t j = 0; j < half; j++) lanes[j] += lanes[j + half];
  return lanes[0];
}

/* c = a b + beta c by oneDNN, which fails only where its packing finds no memory. A step does not stop for that: main
 * looks at the status between steps. */
static int product_status;
static inline void accel_product(char a_lies, char b_lies, int64_t rows, int64_t columns, int64_t depth, const float *a,
                                 int64_t a_step, const float *b, int64_t b_step, float beta, float *c, int64_t c_step) {
  const int status = (int)dnnl_sgemm(a_lies, b_lies, rows, columns, depth, 1.0f, a, a_step, b, b_step, beta, c, c_step);
#pragma omp atomic
  product_status |= status;
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

/* Queries at the places from at[0] on, each among the keys up to its own place. k goes to k_cache, which is
 * next_k's memory, and v to v_cache, which is next_v's. */
static void attention_cached_1x2x4x4(float y[static 32], float next_k[static 8 * 4], float next_v[static 8 * 4],
                                     const float q[static 80], const float k[static 80], const float v[static 80],
                                     const float k_cache[static 8 * 4], const float v_cache[static 8 * 4],
                                     const int32_t at[static 1]) {
  const size_t first = at[0] < 0 ? (size_t)at[0] : 0;
  (void)k_cache;
  (void)v_cache;
#pragma omp parallel for collapse(2)
  for (size_t b = 0; b < 1; b++)
    for (size_t g = 0; g < 2; g++) {
      float *kh = next_k + (b * 2 + g) * 16, *vh = next_v + (b * 2 + g) * 16;
      for (size_t t = 0; t < 4; t++)
        for (size_t d = 0; d < 4; d++) {
          kh[(first + t) * 4 + d] = k[b * 0 + g * 4 + t * 24 + d];
          vh[(first + t) * 4 + d] = v[b * 0 + g * 4 + t * 24 + d];
        }
      for (size_t h = g * 1; h < g * 1 + 1; h++)
        for (size_t t = 0; t < 4; t++) {
          const size_t end = first + t + 1;
          float row[4], p[4], o[4] = {0}, highest = -INFINITY, sum = 0.0f;
          for (size_t d = 0; d < 4; d++) row[d] = q[b * 0 + h * 4 + t * 24 + d] * 0.5f;
          for (size_t s = 0; s < end; s++) {
            float dot = 0.0f;
#pragma omp simd reduction(+ : dot)
            for (size_t d = 0; d < 4; d++) dot += row[d] * kh[s * 4 + d];
            p[s] = dot;
            highest = dot > highest ? dot : highest;
          }
#pragma omp simd reduction(+ : sum)
          for (size_t s = 0; s < end; s++) {
            p[s] = accel_exp(p[s] - highest);
            sum += p[s];
          }
          for (size_t s = 0; s < end; s++)
#pragma omp simd
            for (size_t d = 0; d < 4; d++) o[d] += p[s] * vh[s * 4 + d];
          for (size_t d = 0; d < 4; d++) y[b * 0 + h * 4 + t * 8 + d] = o[d] / sum;
        }
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
    float sums[16] = {0.0f};
    for (size_t j = 0; j < 8; j++) {
      const size_t c = j;
      sums[j] += xr[c];
    }
    const float m = accel_sum_lanes(sums) / 8.0f;
    float squares[16] = {0.0f};
    for (size_t j = 0; j < 8; j++) {
      const size_t c = j;
      squares[j] += (xr[c] - m) * (xr[c] - m);
    }
    const float s = 1.0f / sqrtf(accel_sum_lanes(squares) / 8.0f + 1e-05f);
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

/* y = 4 of the 4 places of x along dimension 0, from place at[0] on. */
static void dynamic_slice_4x8(float y[static 4 * 8], const float x[static 4 * 8], const int32_t at[static 1]) {
  const size_t first = at[0] < 0 ? (size_t)at[0] : 0;
  memcpy(y, x + first * 8, 32 * sizeof *y);
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

/* y = a b: [1][8] x [8][24]. */
static void matmul_1x1x8x24(float y[static 24], const float a[static 8], const float b[static 8 * 24]) {
  accel_product('N', 'N', 1, 24, 8, a, 8, b, 24, 0.0f, y, 24);
}

static void add_1x1x24(float y[static 24], const float x0[static 24], const float x1[static 24]) {
#pragma omp simd
  for (size_t i = 0; i < 24; i++) {
    const float v0 = x0[i];
    const float v1 = x1[i];
    const float t0 = v0 + v1;
    y[i] = t0;
  }
}

/* Queries at the places from at[0] on, each among the keys up to its own place. k goes to k_cache, which is
 * next_k's memory, and v to v_cache, which is next_v's. */
static void attention_cached_1x2x1x4(float y[static 2 * 4], float next_k[static 8 * 4], float next_v[static 8 * 4],
                                     const float q[static 2 * 4], const float k[static 2 * 4],
                                     const float v[static 2 * 4], const float k_cache[static 8 * 4],
                                     const float v_cache[static 8 * 4], const int32_t at[static 1]) {
  const size_t first = at[0] < 3 ? (size_t)at[0] : 3;
  (void)k_cache;
  (void)v_cache;
#pragma omp parallel for collapse(2)
  for (size_t b = 0; b < 1; b++)
    for (size_t g = 0; g < 2; g++) {
      float *kh = next_k + (b * 2 + g) * 16, *vh = next_v + (b * 2 + g) * 16;
      for (size_t t = 0; t < 1; t++)
        for (size_t d = 0; d < 4; d++) {
          kh[(first + t) * 4 + d] = k[b * 8 + g * 4 + t * 4 + d];
          vh[(first + t) * 4 + d] = v[b * 8 + g * 4 + t * 4 + d];
        }
      for (size_t h = g * 1; h < g * 1 + 1; h++)
        for (size_t t = 0; t < 1; t++) {
          const size_t end = first + t + 1;
          float row[4], p[4], o[4] = {0}, highest = -INFINITY, sum = 0.0f;
          for (size_t d = 0; d < 4; d++) row[d] = q[b * 8 + h * 4 + t * 4 + d] * 0.5f;
          for (size_t s = 0; s < end; s++) {
            float dot = 0.0f;
#pragma omp simd reduction(+ : dot)
            for (size_t d = 0; d < 4; d++) dot += row[d] * kh[s * 4 + d];
            p[s] = dot;
            highest = dot > highest ? dot : highest;
          }
#pragma omp simd reduction(+ : sum)
          for (size_t s = 0; s < end; s++) {
            p[s] = accel_exp(p[s] - highest);
            sum += p[s];
          }
          for (size_t s = 0; s < end; s++)
#pragma omp simd
            for (size_t d = 0; d < 4; d++) o[d] += p[s] * vh[s * 4 + d];
          for (size_t d = 0; d < 4; d++) y[b * 8 + h * 4 + t * 4 + d] = o[d] / sum;
        }
    }
}

/* y = a b: [1][8] x [8][8]. */
static void matmul_1x1x8(float y[static 8], const float a[static 8], const float b[static 8 * 8]) {
  accel_product('N', 'N', 1, 8, 8, a, 8, b, 8, 0.0f, y, 8);
}

static void add_1x1x8(float y[static 8], const float x0[static 8], const float x1[static 8]) {
#pragma omp simd
  for (size_t i = 0; i < 8; i++) {
    const float v0 = x0[i];
    const float v1 = x1[i];
    const float t0 = v0 + v1;
    y[i] = t0;
  }
}

/* y = a b: [1][8] x [8][32]. */
static void matmul_1x1x8x32(float y[static 32], const float a[static 8], const float b[static 8 * 32]) {
  accel_product('N', 'N', 1, 32, 8, a, 8, b, 32, 0.0f, y, 32);
}

static void add_gelu_tanh_1x1x32(float y[static 32], const float x0[static 32], const float x1[static 32]) {
#pragma omp simd
  for (size_t i = 0; i < 32; i++) {
    const float v0 = x0[i];
    const float v1 = x1[i];
    const float t0 = v0 + v1;
    const float t1 = t0 * accel_gelu_gate(t0);
    y[i] = t1;
  }
}

/* y = a b: [1][32] x [32][8]. */
static void matmul_1x1x32x8(float y[static 8], const float a[static 32], const float b[static 32 * 8]) {
  accel_product('N', 'N', 1, 8, 32, a, 32, b, 8, 0.0f, y, 8);
}

/* y = (x - mean) rstd weight + bias, rstd = 1 / sqrt(variance + 1e-05), row by row. */
static void layer_norm_1x1x8(float y[static 8], float mean[static 1], float rstd[static 1], const float x[static 8],
                             const float weight[static 8], const float bias[static 8]) {
#pragma omp parallel for
  for (size_t r = 0; r < 1; r++) {
    const float *xr = x + r * 8;
    float *yr = y + r * 8;
    float sums[16] = {0.0f};
    for (size_t j = 0; j < 8; j++) {
      const size_t c = j;
      sums[j] += xr[c];
    }
    const float m = accel_sum_lanes(sums) / 8.0f;
    float squares[16] = {0.0f};
    for (size_t j = 0; j < 8; j++) {
      const size_t c = j;
      squares[j] += (xr[c] - m) * (xr[c] - m);
    }
    const float s = 1.0f / sqrtf(accel_sum_lanes(squares) / 8.0f + 1e-05f);
    mean[r] = m;
    rstd[r] = s;
#pragma omp simd
    for (size_t c = 0; c < 8; c++) yr[c] = (xr[c] - m) * s * weight[c] + bias[c];
  }
}

static void add_1x1x8_2(float y[static 8], const float x0[static 8], const float x1[static 8]) {
#pragma omp simd
  for (size_t i = 0; i < 8; i++) {
    const float v0 = x0[i];
    const float v1 = x1[i];
    const float t0 = v0 + v1;
    y[i] = t0;
  }
}

/* y[r][:] = weight[tokens[r]][:]. */
static void embedding_256x8_2(float y[static 8], const float weight[static 256 * 8], const int32_t tokens[static 1]) {
#pragma omp parallel for
  for (size_t r = 0; r < 1; r++) memcpy(y + r * 8, weight + (size_t)tokens[r] * 8, 8 * sizeof(float));
}

/* y = 1 of the 4 places of x along dimension 0, from place at[0] on. */
static void dynamic_slice_4x8_2(float y[static 8], const float x[static 4 * 8], const int32_t at[static 1]) {
  const size_t first = at[0] < 3 ? (size_t)at[0] : 3;
  memcpy(y, x + first * 8, 8 * sizeof *y);
}

static void add_1x1x8_3(float y[static 8], const float x0[static 8], const float x1[static 8]) {
#pragma omp simd
  for (size_t i = 0; i < 8; i++) {
    const float v0 = x0[i];
    const float v1 = x1[i];
    const float t0 = v0 + v1;
    y[i] = t0;
  }
}

/* y = a b: [1][8] x [8][256]. */
static void matmul_1x1x8x256(float y[static 256], const float a[static 8], const float b[static 2048]) {
  accel_product('N', 'T', 1, 256, 8, a, 8, b, 8, 0.0f, y, 256);
}

/* ---- The model, function by function ---- */

/* attend, gpt2.c:47. */
static void attend_forward(struct attend_weights *weights, struct attend_forward_scratch *scratch, float *add,
                           const float *x, const int32_t *at) {
  matmul_1x4x8x24(scratch->matmul, x, weights->c_attn_weight);
  add_1x4x24(scratch->matmul, scratch->matmul, weights->c_attn_bias);
  attention_cached_1x2x4x4(scratch->reshape, weights->k_cache, weights->v_cache, scratch->matmul, scratch->matmul + 8,
                           scratch->matmul + 16, weights->k_cache, weights->v_cache, at);
  matmul_1x4x8(add, scratch->reshape, weights->c_proj_weight);
  add_1x4x8(add, add, weights->c_proj_bias);
}

/* mlp, gpt2.c:53. */
static void mlp_forward(const struct mlp_weights *weights, struct mlp_forward_scratch *scratch, float *add_2,
                        const float *x) {
  matmul_1x4x8x32(scratch->matmul, x, weights->c_fc_weight);
  add_gelu_tanh_1x4x32(scratch->matmul, scratch->matmul, weights->c_fc_bias);
  matmul_1x4x32x8(add_2, scratch->matmul, weights->c_proj_weight);
  add_1x4x8(add_2, add_2, weights->c_proj_bias);
}

/* block, gpt2.c:58. */
static void block_forward(struct block_weights *weights, struct block_forward_scratch *scratch, float *add,
                          const float *x, const int32_t *at) {
  layer_norm_1x4x8(scratch->layer_norm, scratch->layer_norm_mean, scratch->layer_norm_rstd, x, weights->ln_1_weight,
                   weights->ln_1_bias);
  attend_forward(&weights->attn, &scratch->attend_forward, add, scratch->layer_norm, at);
  add_1x4x8_2(add, x, add);
  layer_norm_1x4x8(scratch->layer_norm_2, scratch->layer_norm_2_mean, scratch->layer_norm_2_rstd, add,
                   weights->ln_2_weight, weights->ln_2_bias);
  mlp_forward(&weights->mlp, &scratch->mlp_forward, scratch->m, scratch->layer_norm_2);
  add_1x4x8_2(add, add, scratch->m);
}

/* predict, gpt2.c:66. */
static void predict_forward(struct predict_weights *weights, struct predict_forward_scratch *scratch, float *matmul,
                            const int32_t *tokens, const int32_t *at) {
  embedding_256x8(scratch->x, weights->wte_weight, tokens);
  dynamic_slice_4x8(scratch->dynamic_slice, weights->wpe_weight, at);
  add_1x4x8_3(scratch->x_of_block[0], scratch->x, scratch->dynamic_slice);
  for (int i = 0; i < 2; i++)
    block_forward(&weights->h[i], &scratch->block_forward, scratch->x_of_block[(i + 1) % 2], scratch->x_of_block[i % 2],
                  at);
  layer_norm_1x4x8(scratch->x_4, scratch->x_4_mean, scratch->x_4_rstd, scratch->x_of_block[0], weights->ln_f_weight,
                   weights->ln_f_bias);
  matmul_1x4x8x256(matmul, scratch->x_4, weights->wte_weight);
}

/* attend, gpt2.c:47. */
static void attend_step_forward(struct attend_weights *weights, struct attend_step_forward_scratch *scratch, float *add,
                                const float *x, const int32_t *at) {
  matmul_1x1x8x24(scratch->matmul, x, weights->c_attn_weight);
  add_1x1x24(scratch->matmul, scratch->matmul, weights->c_attn_bias);
  attention_cached_1x2x1x4(scratch->y, weights->k_cache, weights->v_cache, scratch->matmul, scratch->matmul + 8,
                           scratch->matmul + 16, weights->k_cache, weights->v_cache, at);
  matmul_1x1x8(add, scratch->y, weights->c_proj_weight);
  add_1x1x8(add, add, weights->c_proj_bias);
}

/* mlp, gpt2.c:53. */
static void mlp_step_forward(const struct mlp_weights *weights, struct mlp_step_forward_scratch *scratch, float *add_2,
                             const float *x) {
  matmul_1x1x8x32(scratch->matmul, x, weights->c_fc_weight);
  add_gelu_tanh_1x1x32(scratch->matmul, scratch->matmul, weights->c_fc_bias);
  matmul_1x1x32x8(add_2, scratch->matmul, weights->c_proj_weight);
  add_1x1x8(add_2, add_2, weights->c_proj_bias);
}

/* block, gpt2.c:58. */
static void block_step_forward(struct block_weights *weights, struct block_step_forward_scratch *scratch, float *add,
                               const float *x, const int32_t *at) {
  layer_norm_1x1x8(scratch->layer_norm, scratch->layer_norm_mean, scratch->layer_norm_rstd, x, weights->ln_1_weight,
                   weights->ln_1_bias);
  attend_step_forward(&weights->attn, &scratch->attend_step_forward, add, scratch->layer_norm, at);
  add_1x1x8_2(add, x, add);
  layer_norm_1x1x8(scratch->layer_norm_2, scratch->layer_norm_2_mean, scratch->layer_norm_2_rstd, add,
                   weights->ln_2_weight, weights->ln_2_bias);
  mlp_step_forward(&weights->mlp, &scratch->mlp_step_forward, scratch->m, scratch->layer_norm_2);
  add_1x1x8_2(add, add, scratch->m);
}

/* predict, gpt2.c:66. */
static void predict_step_forward(struct predict_weights *weights, struct predict_step_forward_scratch *scratch,
                                 float *matmul, const int32_t *tokens, const int32_t *at) {
  embedding_256x8_2(scratch->x, weights->wte_weight, tokens);
  dynamic_slice_4x8_2(scratch->dynamic_slice, weights->wpe_weight, at);
  add_1x1x8_3(scratch->x_of_block_step[0], scratch->x, scratch->dynamic_slice);
  for (int i = 0; i < 2; i++)
    block_step_forward(&weights->h[i], &scratch->block_step_forward, scratch->x_of_block_step[(i + 1) % 2],
                       scratch->x_of_block_step[i % 2], at);
  layer_norm_1x1x8(scratch->x_4, scratch->x_4_mean, scratch->x_4_rstd, scratch->x_of_block_step[0],
                   weights->ln_f_weight, weights->ln_f_bias);
  matmul_1x1x8x256(matmul, scratch->x_4, weights->wte_weight);
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
    PARAMETER("h.0.attn.k_cache", h[0].attn.k_cache, ZEROS, 0.0, 0.0, 4, 1, 2, 4, 4),
    PARAMETER("h.0.attn.v_cache", h[0].attn.v_cache, ZEROS, 0.0, 0.0, 4, 1, 2, 4, 4),
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
    PARAMETER("h.1.attn.k_cache", h[1].attn.k_cache, ZEROS, 0.0, 0.0, 4, 1, 2, 4, 4),
    PARAMETER("h.1.attn.v_cache", h[1].attn.v_cache, ZEROS, 0.0, 0.0, 4, 1, 2, 4, 4),
    PARAMETER("h.1.mlp.c_fc.weight", h[1].mlp.c_fc_weight, NORMAL, 0.0, 0.02, 2, 8, 32),
    PARAMETER("h.1.mlp.c_fc.bias", h[1].mlp.c_fc_bias, ZEROS, 0.0, 0.0, 1, 32),
    PARAMETER("h.1.mlp.c_proj.weight", h[1].mlp.c_proj_weight, NORMAL, 0.0, 0.01, 2, 32, 8),
    PARAMETER("h.1.mlp.c_proj.bias", h[1].mlp.c_proj_bias, ZEROS, 0.0, 0.0, 1, 8),
};

/* Parameters that the file need not have, by their places above. */
static const int fresh[] = {
    /* h.0.attn.k_cache */
    12,
    /* h.0.attn.v_cache */
    13,
    /* h.1.attn.k_cache */
    26,
    /* h.1.attn.v_cache */
    27,
};
/* Tensors there that may be extra. */
static const char *const ignored[] = {
    "*",
};

static const struct accel_program program = {
    .name = "gpt2",
    .summary = "2 layers, 0.00 M parameters, float32",
    .job_digest = "23c1774997577463c6dedcb923b477ac65e2f501ae9a6847f192f786e1132b29",
    .generator = "accel-gen 0.1.0",
    .plan = "model     gpt2.c: 2 layers, 3,840 parameters\n"
            "token     computes 1 of 4 positions, 7.82 kFLOP (products 93 %)\n"
            "memory    0.0 MiB: weights 0.0, cache 0.0, scratch 0.0\n"
            "traffic   none (1 rank)\n",
    .steps = 3,
    .seed = 11,
    .data_seed = 11,
    .batch_size = 3,
    .micro_batches = 1,
    .sync_with_dataloader = false,
    .tensors = tensors,
    .n_tensors = 32,
    .weights_bytes = sizeof(struct predict_weights),
    .arena_bytes = sizeof(struct arena),
    .processor = ACCEL_PROCESSOR,
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
    .start = {.path = NULL, .fresh = fresh, .n_fresh = 4, .ignored = ignored, .n_ignored = 1},
};

/* Tokens go through the model once each, the first ones of a text up to 4 at a time; what they need of earlier ones
 * is kept among the weights. Each further token is chosen from the logits behind the newest one. */
/* A function of its own, so that the start looks at the processor before the first instruction that it may lack. */
static __attribute__((noinline)) int write_texts(struct accel_generation *run) {
  arena = accel_generation_arena(run);
  accel_generation_weights(run, &arena->weights);
  for (int64_t count; (count = accel_generation_places(run, 4, 4, arena->tokens, arena->at)) > 0;) {
    if (count == 1)
      predict_step_forward(&arena->weights, &arena->scratch.one, arena->result, arena->tokens, arena->at);
    else
      predict_forward(&arena->weights, &arena->scratch.forward, arena->result, arena->tokens, arena->at);
    accel_generation_logits(run, arena->result + (count - 1) * 256, 256);
  }
  return accel_generation_finish(run);
}

int main(int argc, char **argv) {
  return write_texts(accel_generation_start(&program, argc, argv));
}
