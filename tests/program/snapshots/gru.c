/* gru_bytes: a training program for one job, written by accel-gen 0.1.0.
 *
 * job    job.yaml, f44aa4d514cc661bfb71def233d0bb953e46ac69b326bf2e9d284ff10ae2570b
 * model     gru_bytes.c: 4,281 parameters
 * step      3 x 2 = 6 tokens, 112 kFLOP (products 86 %)
 * memory    0.1 MiB: weights 0.0, gradients 0.0, optimizer 0.0, activations 0.0, scratch 0.0
 * aliased   0.0 MiB more of activations, in memory of gradients that are not written yet
 * traffic   none (1 rank)
 *
 * Build: cc -std=c17 -O3 -march=native -fopenmp trainer.c -o trainer $(pkg-config --cflags --libs accel-runtime) */
#include <accel/trainer.h>
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

struct cell_weights {
  alignas(64) float weight_ih[27 * 5];
  alignas(64) float weight_hh[27 * 9];
  alignas(64) float bias_ih[27];
  alignas(64) float bias_hh[27];
};
static_assert(sizeof(struct cell_weights) == 1856, "as planned");

struct model_weights {
  alignas(64) float embedding_weight[256 * 5];
  alignas(64) float start[9];
  struct cell_weights cell;
  alignas(64) float output_weight[256 * 9];
  alignas(64) float output_bias[256];
};
static_assert(sizeof(struct model_weights) == 17280, "as planned");

/* What cell_forward keeps for its backward. */
struct cell_saved {
  alignas(64) float state_2[3 * 27];
  alignas(64) float reset[3 * 9];
  alignas(64) float keep[3 * 9];
  alignas(64) float fresh[3 * 9];
  alignas(64) float sub[3 * 9];
};
static_assert(sizeof(struct cell_saved) == 896, "as planned");

/* What step_loss_forward keeps for its backward. */
struct step_loss_saved {
  alignas(64) float add[3 * 256];
  alignas(64) float cross_entropy_lse[3];
  alignas(64) float cross_entropy_scale[1];
};
static_assert(sizeof(struct step_loss_saved) == 3200, "as planned");

/* What model_forward keeps for its backward. */
struct model_saved {
  alignas(64) float x[6 * 5]; /* [3][2][5] */
  alignas(64) float h[3 * 9];
  alignas(64) float h_2[3 * 9];
  alignas(64) float h_3[3 * 9];
  struct step_loss_saved step_loss_2;
};
static_assert(sizeof(struct model_saved) == 3712, "as planned");

/* What the forward keeps in memory of gradients: the backward writes each of them when it has read what lies there. */
struct aliased {
  alignas(64) char before_cell_2[128];
  struct cell_saved cell_2;
  struct step_loss_saved step_loss;
  struct cell_saved cell;
};
static_assert(sizeof(struct aliased) == 5120, "as planned");

/* What cell_forward needs while it runs. */
struct cell_forward_scratch {
  alignas(64) float input[3 * 27];
};
static_assert(sizeof(struct cell_forward_scratch) == 384, "as planned");

/* What model_forward needs while it runs; members of a union are never in use together. */
struct model_forward_scratch {
  alignas(64) float step_loss[1];
  union {
    alignas(64) int32_t reshape_2_dense_9[3];
    alignas(64) int32_t reshape_4_dense_13[3];
    alignas(64) float loss_3[1];
    struct cell_forward_scratch cell_forward;
  };
  union {
    alignas(64) float reshape_dense_7[15];
    alignas(64) float reshape_3_dense_11[15];
    alignas(64) float step_loss_2[1];
  };
};
static_assert(sizeof(struct model_forward_scratch) == 512, "as planned");

/* What cell_backward needs while it runs. */
struct cell_backward_scratch {
  alignas(64) float d_input_2[3 * 27];
  alignas(64) float d_state_2[3 * 27];
};
static_assert(sizeof(struct cell_backward_scratch) == 768, "as planned");

/* What model_backward needs while it runs; members of a union are never in use together. */
struct model_backward_scratch {
  alignas(64) float d_reshape_3[3 * 5];
  union {
    alignas(64) float d_x[6 * 5]; /* [3][2][5] */
    alignas(64) float d_step_loss_3[3 * 9];
    alignas(64) int32_t reshape_4_dense_7[3];
    struct cell_backward_scratch cell_backward;
  };
  union {
    alignas(64) float d_h_3[3 * 9];
    alignas(64) float d_h[3 * 9];
    alignas(64) int32_t reshape_2_dense_13[3];
  };
  union {
    alignas(64) float d_cell[3 * 9];
    alignas(64) float d_step_loss_2[1];
  };
  union {
    alignas(64) float reshape_3_dense_9[15];
    alignas(64) float reshape_dense_16[15];
    alignas(64) float d_step_loss[1];
  };
  union {
    alignas(64) float d_reshape[3 * 5];
    alignas(64) float d_sum[1];
  };
};
static_assert(sizeof(struct model_backward_scratch) == 1216, "as planned");

struct arena {
  union {
    struct model_weights weights;
    float all_weights[4320];
  };
  union {
    union {
      struct model_weights gradients;
      float all_gradients[4320];
    };
    struct aliased aliased;
  };
  float moment_1[4320];
  float moment_2[4320];
  alignas(64) int32_t tokens[3 * 2];
  alignas(64) int32_t targets[3 * 2];
  alignas(64) float result[1]; /* the loss */
  struct model_saved saved;
  union {
    struct model_forward_scratch forward;
    struct model_backward_scratch backward;
  } scratch;
};
static_assert(sizeof(struct arena) == 74240, "as planned");

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

/* tanh x: an odd minimax polynomial below 0.625, 1 - 2 / (e^2x + 1) above. Within 2 ulp. */
static inline float accel_tanh(float x) {
  const float s = x * x;
  float p = -0.00571704495f;
  p = p * s + 0.0206505872f;
  p = p * s - 0.0537434981f;
  p = p * s + 0.133314913f;
  p = p * s - 0.333332839f;
  const float near = p * s * x + x;
  const float far = 1.0f - 2.0f / (accel_exp(2.0f * fabsf(x)) + 1.0f);
  return fabsf(x) < 0.625f ? near : copysignf(far, x);
}

/* 1 / (1 + e^-x). Within 3 ulp. */
static inline float accel_sigmoid(float x) {
  return 1.0f / (1.0f + accel_exp(-x));
}

/* The largest of x[0 .. n - 1]; NaNs do not count. */
static inline float accel_max(const float *x, size_t n) {
  float lanes[32], highest = -INFINITY;
  for (size_t j = 0; j < 32; j++) lanes[j] = -INFINITY;
  for (size_t i = 0; i < n / 32; i++)
#pragma omp simd
    for (size_t j = 0; j < 32; j++) lanes[j] = x[i * 32 + j] > lanes[j] ? x[i * 32 + j] : lanes[j];
  for (size_t i = n / 32 * 32; i < n; i++) highest = x[i] > highest ? x[i] : highest;
  for (size_t half = 16; half > 0; half /= 2)
    for (size_t j = 0; j < half; j++) lanes[j] = lanes[j + half] > lanes[j] ? lanes[j + half] : lanes[j];
  return lanes[0] > highest ? lanes[0] : highest;
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

/* y = a b: [3][5] x [5][27]. */
static void matmul_3x5x27(float y[static 3 * 27], const float a[static 3 * 5], const float b[static 135]) {
  accel_product('N', 'T', 3, 27, 5, a, 5, b, 5, 0.0f, y, 27);
}

/* y = a b: [3][9] x [9][27]. */
static void matmul_3x9x27(float y[static 3 * 27], const float a[static 3 * 9], const float b[static 243]) {
  accel_product('N', 'T', 3, 27, 9, a, 9, b, 9, 0.0f, y, 27);
}

static void add_3x27(float y[static 3 * 27], const float x0[static 3 * 27], const float x1[static 27]) {
  for (size_t i = 0; i < 3; i++)
#pragma omp simd
    for (size_t j = 0; j < 27; j++) {
      const float v0 = x0[i * 27 + j];
      const float v1 = x1[j];
      const float t0 = v0 + v1;
      y[i * 27 + j] = t0;
    }
}

static void add_sigmoid_add_sigmoid_etc_3x9(float y0[static 3 * 9], float y1[static 3 * 9], float y2[static 3 * 9],
                                            float y3[static 3 * 9], float y4[static 3 * 9], const float x0[static 63],
                                            const float x1[static 63], const float x2[static 63],
                                            const float x3[static 63], const float x4[static 63],
                                            const float x5[static 63], const float x6[static 3 * 9]) {
  for (size_t i = 0; i < 3; i++)
#pragma omp simd
    for (size_t j = 0; j < 9; j++) {
      const float v0 = x0[i * 27 + j];
      const float v1 = x1[i * 27 + j];
      const float v2 = x2[i * 27 + j];
      const float v3 = x3[i * 27 + j];
      const float v4 = x4[i * 27 + j];
      const float v5 = x5[i * 27 + j];
      const float v6 = x6[i * 9 + j];
      const float t0 = v0 + v1;
      const float t1 = accel_sigmoid(t0);
      const float t2 = v2 + v3;
      const float t3 = accel_sigmoid(t2);
      const float t4 = t1 * v4;
      const float t5 = v5 + t4;
      const float t6 = accel_tanh(t5);
      const float t7 = v6 - t6;
      const float t8 = t3 * t7;
      const float t9 = t6 + t8;
      y0[i * 9 + j] = t1;
      y1[i * 9 + j] = t3;
      y2[i * 9 + j] = t6;
      y3[i * 9 + j] = t7;
      y4[i * 9 + j] = t9;
    }
}

/* y = a b: [3][9] x [9][256]. */
static void matmul_3x9x256(float y[static 3 * 256], const float a[static 3 * 9], const float b[static 2304]) {
  accel_product('N', 'T', 3, 256, 9, a, 9, b, 9, 0.0f, y, 256);
}

static void add_3x256(float y[static 3 * 256], const float x0[static 3 * 256], const float x1[static 256]) {
  for (size_t i = 0; i < 3; i++)
#pragma omp simd
    for (size_t j = 0; j < 256; j++) {
      const float v0 = x0[i * 256 + j];
      const float v1 = x1[j];
      const float t0 = v0 + v1;
      y[i * 256 + j] = t0;
    }
}

/* loss = the mean of lse[r] - logits[r][targets[r]] over the targets that are not -100; lse = ln sum e^logits. */
static void cross_entropy_3x256(float loss[static 1], float lse[static 3], float scale[static 1],
                                const float logits[static 3 * 256], const int32_t targets[static 3]) {
  double losses[1];
  int counts[1];
  for (size_t chunk = 0; chunk < 1; chunk++) {
    losses[chunk] = 0.0;
    counts[chunk] = 0;
    for (size_t r = chunk * 8; r < (chunk + 1 == 1 ? 3 : (chunk + 1) * 8); r++) {
      const float *x = logits + r * 256;
      const float highest = accel_max(x, 256);
      float sum = 0.0f;
#pragma omp simd reduction(+ : sum)
      for (size_t v = 0; v < 256; v++) sum += accel_exp(x[v] - highest);
      const float rest = logf(sum);
      lse[r] = highest + rest;
      const int32_t target = targets[r];
      if (target >= 0) {
        losses[chunk] += (highest - x[target]) + rest;
        counts[chunk]++;
      }
    }
  }
  double total = 0.0;
  int count = 0;
  for (size_t chunk = 0; chunk < 1; chunk++) {
    total += losses[chunk];
    count += counts[chunk];
  }
  scale[0] = 1.0f / (float)count;
  loss[0] = (float)(total / count);
}

/* y[r][:] = weight[tokens[r]][:]. */
static void embedding_256x5(float y[static 6 * 5], const float weight[static 256 * 5],
                            const int32_t tokens[static 3 * 2]) {
#pragma omp parallel for
  for (size_t r = 0; r < 6; r++) memcpy(y + r * 5, weight + (size_t)tokens[r] * 5, 5 * sizeof(float));
}

static void add_3x9(float y[static 3 * 9], const float x[static 9]) {
  for (size_t i = 0; i < 3; i++)
#pragma omp simd
    for (size_t j = 0; j < 9; j++) {
      const float v0 = x[j];
      const float t0 = 0.0f;
      const float t1 = t0 + v0;
      y[i * 9 + j] = t1;
    }
}

static void copy_3x5(float y[static 3 * 5], const float x[static 25]) {
  for (size_t i = 0; i < 3; i++)
#pragma omp simd
    for (size_t j = 0; j < 5; j++) {
      const float v0 = x[i * 10 + j];
      const float t0 = v0;
      y[i * 5 + j] = t0;
    }
}

static void copy_3(int32_t y[static 3], const int32_t x[static 5]) {
#pragma omp simd
  for (size_t i = 0; i < 3; i++) {
    const int32_t v0 = x[i * 2];
    const int32_t t0 = v0;
    y[i] = t0;
  }
}

static void add_add_1(float y[static 1], const float x0[static 1], const float x1[static 1]) {
  const float v0 = x0[0];
  const float v1 = x1[0];
  const float t0 = 0.0f;
  const float t1 = t0 + v0;
  const float t2 = t1 + v1;
  y[0] = t2;
}

/* y = the sum of x over axes 0. */
static void sum_1(float y[static 1], const float x[static 1]) {
  for (size_t r = 0; r < 1; r++) {
    float sum = 0.0f;
#pragma omp simd reduction(+ : sum)
    for (size_t c = 0; c < 1; c++) sum += x[r * 1 + c];
    y[r] = sum;
  }
}

static void scale_1(float y[static 1], const float x[static 1]) {
  const float v0 = x[0];
  const float t0 = v0 * 0.5f;
  y[0] = t0;
}

static void mul_sigmoid_backward_3x9(float y[static 63], const float x0[static 3 * 9], const float x1[static 3 * 9],
                                     const float x2[static 3 * 9]) {
  for (size_t i = 0; i < 3; i++)
#pragma omp simd
    for (size_t j = 0; j < 9; j++) {
      const float v0 = x0[i * 9 + j];
      const float v1 = x1[i * 9 + j];
      const float v2 = x2[i * 9 + j];
      const float t0 = v0 * v1;
      const float t1 = t0 * (v2 - v2 * v2);
      y[i * 27 + j] = t1;
    }
}

static void mul_neg_add_tanh_backward_etc_3x9(float y0[static 3 * 9], float y1[static 63], float y2[static 63],
                                              float y3[static 63], const float x0[static 3 * 9],
                                              const float x1[static 3 * 9], const float x2[static 3 * 9],
                                              const float x3[static 63], const float x4[static 3 * 9]) {
  for (size_t i = 0; i < 3; i++)
#pragma omp simd
    for (size_t j = 0; j < 9; j++) {
      const float v0 = x0[i * 9 + j];
      const float v1 = x1[i * 9 + j];
      const float v2 = x2[i * 9 + j];
      const float v3 = x3[i * 27 + j];
      const float v4 = x4[i * 9 + j];
      const float t0 = v0 * v1;
      const float t1 = -t0;
      const float t2 = v0 + t1;
      const float t3 = t2 * (1.0f - v2 * v2);
      const float t4 = t3 * v3;
      const float t5 = t3 * v4;
      const float t6 = t4 * (v4 - v4 * v4);
      y0[i * 9 + j] = t0;
      y1[i * 27 + j] = t3;
      y2[i * 27 + j] = t5;
      y3[i * 27 + j] = t6;
    }
}

static void copy_3x9(float y[static 63], const float x[static 63]) {
  for (size_t i = 0; i < 3; i++)
#pragma omp simd
    for (size_t j = 0; j < 9; j++) {
      const float v0 = x[i * 27 + j];
      const float t0 = v0;
      y[i * 27 + j] = t0;
    }
}

/* y += the sum of x over axes 0. */
static void sum_add_3x27(float y[static 27], const float x[static 3 * 27]) {
  for (size_t first = 0; first < 27; first += 27) {
    enum { WIDTH = 27 };
    float sums[27] = {0.0f};
    for (size_t r = 0; r < 3; r++) {
      const float *xr = x + r * 27 + first;
#pragma omp simd
      for (size_t c = 0; c < WIDTH; c++) sums[c] += xr[c];
    }
    for (size_t c = 0; c < WIDTH; c++) y[first + c] += sums[c];
  }
}

/* y = a b: [3][27] x [27][9]. */
static void matmul_3x27x9(float y[static 3 * 9], const float a[static 3 * 27], const float b[static 27 * 9]) {
  accel_product('N', 'N', 3, 9, 27, a, 27, b, 9, 0.0f, y, 9);
}

/* y += a b: [9][3] x [3][27]. */
static void matmul_add_9x3x27(float y[static 243], const float a[static 27], const float b[static 3 * 27]) {
  accel_product('T', 'N', 27, 9, 3, b, 27, a, 9, 1.0f, y, 9);
}

/* y = a b: [3][27] x [27][5]. */
static void matmul_3x27x5(float y[static 3 * 5], const float a[static 3 * 27], const float b[static 27 * 5]) {
  accel_product('N', 'N', 3, 5, 27, a, 27, b, 5, 0.0f, y, 5);
}

/* y += a b: [5][3] x [3][27]. */
static void matmul_add_5x3x27(float y[static 135], const float a[static 15], const float b[static 3 * 27]) {
  accel_product('T', 'N', 27, 5, 3, b, 27, a, 5, 1.0f, y, 5);
}

static void add_3x9_2(float y[static 3 * 9], const float x0[static 3 * 9], const float x1[static 3 * 9]) {
#pragma omp simd
  for (size_t i = 0; i < 27; i++) {
    const float v0 = x0[i];
    const float v1 = x1[i];
    const float t0 = v0 + v1;
    y[i] = t0;
  }
}

/* dlogits = d_loss scale (e^(logits - lse) - 1 at the target); rows whose target is -100 are 0. */
static void cross_entropy_backward_1(float dlogits[static 3 * 256], const float d_loss[static 1],
                                     const float logits[static 3 * 256], const float lse[static 3],
                                     const float scale[static 1], const int32_t targets[static 3]) {
  for (size_t r = 0; r < 3; r++) {
    const float *x = logits + r * 256;
    float *dx = dlogits + r * 256;
    const int32_t target = targets[r];
    const float factor = target >= 0 ? d_loss[0] * scale[0] : 0.0f, l = lse[r];
#pragma omp simd
    for (size_t v = 0; v < 256; v++) dx[v] = factor * accel_exp(x[v] - l);
    if (target >= 0) dx[target] -= factor;
  }
}

/* y += the sum of x over axes 0. */
static void sum_add_3x256(float y[static 256], const float x[static 3 * 256]) {
  for (size_t first = 0; first < 256; first += 64) {
    enum { WIDTH = 64 };
    float sums[64] = {0.0f};
    for (size_t r = 0; r < 3; r++) {
      const float *xr = x + r * 256 + first;
#pragma omp simd
      for (size_t c = 0; c < WIDTH; c++) sums[c] += xr[c];
    }
    for (size_t c = 0; c < WIDTH; c++) y[first + c] += sums[c];
  }
}

/* y = a b: [3][256] x [256][9]. */
static void matmul_3x256x9(float y[static 3 * 9], const float a[static 3 * 256], const float b[static 256 * 9]) {
  accel_product('N', 'N', 3, 9, 256, a, 256, b, 9, 0.0f, y, 9);
}

/* y += a b: [9][3] x [3][256]. */
static void matmul_add_9x3x256(float y[static 2304], const float a[static 27], const float b[static 3 * 256]) {
  accel_product('T', 'N', 256, 9, 3, b, 256, a, 9, 1.0f, y, 9);
}

static void scale_1_2(float y[static 1]) {
  const float t0 = 1.0f;
  const float t1 = t0 * 0.5f;
  y[0] = t1;
}

/* y = the sum of x over axes 0. */
static void sum_3x9(float y[static 9], const float x[static 3 * 9]) {
  for (size_t first = 0; first < 9; first += 9) {
    enum { WIDTH = 9 };
    float sums[9] = {0.0f};
    for (size_t r = 0; r < 3; r++) {
      const float *xr = x + r * 9 + first;
#pragma omp simd
      for (size_t c = 0; c < WIDTH; c++) sums[c] += xr[c];
    }
    for (size_t c = 0; c < WIDTH; c++) y[first + c] = sums[c];
  }
}

static void copy_3x1x5(float y[static 25], const float x[static 3 * 5]) {
  for (size_t i = 0; i < 3; i++)
#pragma omp simd
    for (size_t j = 0; j < 5; j++) {
      const float v0 = x[i * 5 + j];
      const float t0 = v0;
      y[i * 10 + j] = t0;
    }
}

/* dweight[tokens[r]][:] = the sum of dy[r][:]. A thread has columns, not rows: sums keep the order of the tokens. */
static void embedding_backward_3x2x5(float dweight[static 256 * 5], const float dy[static 6 * 5],
                                     const int32_t tokens[static 3 * 2]) {
#pragma omp parallel
  {
#pragma omp for
    for (size_t v = 0; v < 256; v++) memset(dweight + v * 5, 0, 5 * sizeof(float));
#pragma omp for
    for (size_t first = 0; first < 5; first += 5) {
      const size_t count = 5;
      for (size_t r = 0; r < 6; r++) {
        const float *from = dy + r * 5 + first;
        float *to = dweight + (size_t)tokens[r] * 5 + first;
#pragma omp simd
        for (size_t c = 0; c < count; c++) to[c] += from[c];
      }
    }
  }
}

/* ---- The model, function by function ---- */

/* cell, gru_bytes.c:16. */
static void cell_forward(const struct cell_weights *weights, struct cell_saved *saved,
                         struct cell_forward_scratch *scratch, float add_4[static 3 * 9], const float x[static 3 * 5],
                         const float h[static 3 * 9]) {
  matmul_3x5x27(scratch->input, x, weights->weight_ih);
  matmul_3x9x27(saved->state_2, h, weights->weight_hh);
  add_3x27(scratch->input, scratch->input, weights->bias_ih);
  add_3x27(saved->state_2, saved->state_2, weights->bias_hh);
  add_sigmoid_add_sigmoid_etc_3x9(saved->reset, saved->keep, saved->fresh, saved->sub, add_4, scratch->input,
                                  saved->state_2, scratch->input + 9, saved->state_2 + 9, saved->state_2 + 18,
                                  scratch->input + 18, h);
}

/* step_loss, gru_bytes.c:39. */
static void step_loss_forward(const struct model_weights *weights, struct step_loss_saved *saved,
                              float cross_entropy[static 1], const float h[static 3 * 9],
                              const int32_t target[static 3]) {
  matmul_3x9x256(saved->add, h, weights->output_weight);
  add_3x256(saved->add, saved->add, weights->output_bias);
  cross_entropy_3x256(cross_entropy, saved->cross_entropy_lse, saved->cross_entropy_scale, saved->add, target);
}

/* model, gru_bytes.c:43. */
static void model_forward(const struct model_weights *weights, struct model_saved *saved, struct aliased *aliased,
                          struct model_forward_scratch *scratch, float scale[static 1],
                          const int32_t tokens[static 3 * 2], const int32_t targets[static 3 * 2]) {
  embedding_256x5(saved->x, weights->embedding_weight, tokens);
  add_3x9(saved->h, weights->start);
  copy_3x5(scratch->reshape_dense_7, saved->x);
  cell_forward(&weights->cell, &aliased->cell, &scratch->cell_forward, saved->h_2, scratch->reshape_dense_7, saved->h);
  copy_3(scratch->reshape_2_dense_9, targets);
  step_loss_forward(weights, &aliased->step_loss, scratch->step_loss, saved->h_2, scratch->reshape_2_dense_9);
  copy_3x5(scratch->reshape_3_dense_11, saved->x + 5);
  cell_forward(&weights->cell, &aliased->cell_2, &scratch->cell_forward, saved->h_3, scratch->reshape_3_dense_11,
               saved->h_2);
  copy_3(scratch->reshape_4_dense_13, targets + 1);
  step_loss_forward(weights, &saved->step_loss_2, scratch->step_loss_2, saved->h_3, scratch->reshape_4_dense_13);
  add_add_1(scratch->loss_3, scratch->step_loss, scratch->step_loss_2);
  sum_1(scale, scratch->loss_3);
  scale_1(scale, scale);
}

/* Gradient of cell, gru_bytes.c:16. */
static void cell_backward(const struct cell_weights *weights, struct cell_weights *gradients, struct cell_saved *saved,
                          struct cell_backward_scratch *scratch, float d_x[static 3 * 5], float d_h[static 3 * 9],
                          const float d_add_4[static 3 * 9], const float h[static 3 * 9], const float x[static 3 * 5]) {
  mul_sigmoid_backward_3x9(scratch->d_input_2 + 9, d_add_4, saved->sub, saved->keep);
  mul_neg_add_tanh_backward_etc_3x9(saved->keep, scratch->d_input_2 + 18, scratch->d_state_2 + 18, scratch->d_input_2,
                                    d_add_4, saved->keep, saved->fresh, saved->state_2 + 18, saved->reset);
  copy_3x9(scratch->d_state_2, scratch->d_input_2);
  copy_3x9(scratch->d_state_2 + 9, scratch->d_input_2 + 9);
  sum_add_3x27(gradients->bias_hh, scratch->d_state_2);
  sum_add_3x27(gradients->bias_ih, scratch->d_input_2);
  matmul_3x27x9(d_h, scratch->d_state_2, weights->weight_hh);
  matmul_add_9x3x27(gradients->weight_hh, h, scratch->d_state_2);
  matmul_3x27x5(d_x, scratch->d_input_2, weights->weight_ih);
  matmul_add_5x3x27(gradients->weight_ih, x, scratch->d_input_2);
  add_3x9_2(d_h, saved->keep, d_h);
}

/* Gradient of step_loss, gru_bytes.c:39. */
static void step_loss_backward(const struct model_weights *weights, struct model_weights *gradients,
                               struct step_loss_saved *saved, float d_h[static 3 * 9],
                               const float d_cross_entropy[static 1], const int32_t target[static 3],
                               const float h[static 3 * 9]) {
  cross_entropy_backward_1(saved->add, d_cross_entropy, saved->add, saved->cross_entropy_lse,
                           saved->cross_entropy_scale, target);
  sum_add_3x256(gradients->output_bias, saved->add);
  matmul_3x256x9(d_h, saved->add, weights->output_weight);
  matmul_add_9x3x256(gradients->output_weight, h, saved->add);
}

/* Gradient of model, gru_bytes.c:43. */
static void model_backward(const struct model_weights *weights, struct model_weights *gradients,
                           struct model_saved *saved, struct aliased *aliased, struct model_backward_scratch *scratch,
                           const int32_t targets[static 3 * 2], const int32_t tokens[static 3 * 2]) {
  scale_1_2(scratch->d_sum);
  sum_1(scratch->d_step_loss_2, scratch->d_sum);
  copy_3(scratch->reshape_4_dense_7, targets + 1);
  step_loss_backward(weights, gradients, &saved->step_loss_2, scratch->d_h_3, scratch->d_step_loss_2,
                     scratch->reshape_4_dense_7, saved->h_3);
  copy_3x5(scratch->reshape_3_dense_9, saved->x + 5);
  cell_backward(&weights->cell, &gradients->cell, &aliased->cell_2, &scratch->cell_backward, scratch->d_reshape_3,
                scratch->d_cell, scratch->d_h_3, saved->h_2, scratch->reshape_3_dense_9);
  sum_1(scratch->d_step_loss, scratch->d_sum);
  copy_3(scratch->reshape_2_dense_13, targets);
  step_loss_backward(weights, gradients, &aliased->step_loss, scratch->d_step_loss_3, scratch->d_step_loss,
                     scratch->reshape_2_dense_13, saved->h_2);
  add_3x9_2(scratch->d_cell, scratch->d_cell, scratch->d_step_loss_3);
  copy_3x5(scratch->reshape_dense_16, saved->x);
  cell_backward(&weights->cell, &gradients->cell, &aliased->cell, &scratch->cell_backward, scratch->d_reshape,
                scratch->d_h, scratch->d_cell, saved->h, scratch->reshape_dense_16);
  sum_3x9(gradients->start, scratch->d_h);
  copy_3x1x5(scratch->d_x, scratch->d_reshape);
  copy_3x1x5(scratch->d_x + 5, scratch->d_reshape_3);
  embedding_backward_3x2x5(gradients->embedding_weight, scratch->d_x, tokens);
}

/* ---- Training ---- */

/* The batch at hand gives its loss, in arena->result. */
static void forward(void) {
  model_forward(&arena->weights, &arena->saved, &arena->aliased, &arena->scratch.forward, arena->result, arena->tokens,
                arena->targets);
}

/* The gradients of that loss. */
static void backward(void) {
  memset(arena->gradients.cell.weight_ih, 0, sizeof arena->gradients.cell.weight_ih);
  memset(arena->gradients.cell.weight_hh, 0, sizeof arena->gradients.cell.weight_hh);
  memset(arena->gradients.cell.bias_ih, 0, sizeof arena->gradients.cell.bias_ih);
  memset(arena->gradients.cell.bias_hh, 0, sizeof arena->gradients.cell.bias_hh);
  memset(arena->gradients.output_weight, 0, sizeof arena->gradients.output_weight);
  memset(arena->gradients.output_bias, 0, sizeof arena->gradients.output_bias);
  model_backward(&arena->weights, &arena->gradients, &arena->saved, &arena->aliased, &arena->scratch.backward,
                 arena->targets, arena->tokens);
}

/* The same rate for all steps. */
static double learning_rate(int64_t at) {
  (void)at;
  return 0.001;
}

/* The norm of the whole gradient, by chunks of 16384 elements, so that it does not depend on the number of threads. */
static double gradient_norm(void) {
  static double sums[1];
  for (size_t chunk = 0; chunk < 1; chunk++) {
    const float *g = arena->all_gradients + chunk * 16384;
    const size_t count = 4320;
    float sum = 0.0f;
#pragma omp simd reduction(+ : sum)
    for (size_t i = 0; i < count; i++) sum += g[i] * g[i];
    sums[chunk] = sum;
  }
  double total = 0.0;
  for (size_t chunk = 0; chunk < 1; chunk++) total += sums[chunk];
  return sqrt(total);
}

/* AdamW (Loshchilov, Hutter, arXiv:1711.05101) in PyTorch's arithmetic, in one sweep with the gradient's clipping. */
static void update(int64_t at, double lr) {
  const double correction_1 = 1.0 - pow(0.9, (double)(at + 1));
  const double correction_2 = 1.0 - pow(0.999, (double)(at + 1));
  const float rate = (float)(lr / correction_1), root = (float)(1.0 / sqrt(correction_2));
  const float keep = (float)(1.0 - lr * 0.01);
  const float *restrict gradients = arena->all_gradients;
  float *restrict weights = arena->all_weights;
  float *restrict moment_1 = arena->moment_1, *restrict moment_2 = arena->moment_2;
#pragma omp parallel for simd
  for (size_t i = 0; i < 4320; i++) {
    const float g = gradients[i];
    const float m = 0.9f * moment_1[i] + 0.1f * g;
    const float v = 0.999f * moment_2[i] + 0.001f * (g * g);
    moment_1[i] = m;
    moment_2[i] = v;
    const float w = weights[i] * keep - rate * m / (sqrtf(v) * root + 1e-08f);
    weights[i] = w;
  }
}

/* What the newest step left behind, for the log. */
static struct accel_report report;

static void load_batch(struct accel_run *run, enum accel_split split, int64_t position) {
  accel_load_windows(run, split, position, 3, arena->tokens, arena->targets);
}

/* One optimizer step: 3 samples. */
static void step(struct accel_run *run, int64_t at) {
  load_batch(run, ACCEL_TRAIN, at * 3);
  forward();
  report.loss = arena->result[0];
  backward();
  report.lr = learning_rate(at);
  report.grad_norm = gradient_norm();
  accel_require_finite_loss(run, at, report.loss);
  accel_require_finite_norm(run, at, report.grad_norm);
  update(at, report.lr);
}

/* The parameters by their published names: where they lie, how they start, their shape. */
#define PARAMETER(name, member, init, a, b, rank, ...)                                                                 \
  {name, offsetof(struct model_weights, member), rank, {__VA_ARGS__}, ACCEL_##init, a, b, ACCEL_FLOAT32}
static const struct accel_tensor tensors[] = {
    PARAMETER("embedding.weight", embedding_weight, NORMAL, 0.0, 1.0, 2, 256, 5),
    PARAMETER("start", start, ZEROS, 0.0, 0.0, 1, 9),
    PARAMETER("cell.weight_ih", cell.weight_ih, UNIFORM, -0.3333333333333333, 0.3333333333333333, 2, 27, 5),
    PARAMETER("cell.weight_hh", cell.weight_hh, UNIFORM, -0.3333333333333333, 0.3333333333333333, 2, 27, 9),
    PARAMETER("cell.bias_ih", cell.bias_ih, UNIFORM, -0.3333333333333333, 0.3333333333333333, 1, 27),
    PARAMETER("cell.bias_hh", cell.bias_hh, UNIFORM, -0.3333333333333333, 0.3333333333333333, 1, 27),
    PARAMETER("output.weight", output_weight, UNIFORM, -0.3333333333333333, 0.3333333333333333, 2, 256, 9),
    PARAMETER("output.bias", output_bias, UNIFORM, -0.3333333333333333, 0.3333333333333333, 1, 256),
};

/* What outlives a step: its file in a checkpoint and its name there, where it lies. */
static const struct accel_state states[] = {
    {"model", "", ACCEL_FLOAT32, offsetof(struct arena, weights), 4320, NULL, 0},
    {"optimizer", "exp_avg", ACCEL_FLOAT32, offsetof(struct arena, moment_1), 4320, NULL, 0},
    {"optimizer", "exp_avg_sq", ACCEL_FLOAT32, offsetof(struct arena, moment_2), 4320, NULL, 0},
};

/* The job, key by key, a digest of the model's C, and whether the key may change when the run is continued. */
static const struct accel_key keys[] = {
    {"model.source", "gru_bytes.c", true},
    {"model.config.n_embd", "5", false},
    {"model.config.width", "9", false},
    {"model.config.vocab_size", "256", false},
    {"model.config.block_size", "2", false},
    {"data.train.path", "corpus.txt", true},
    {"data.train.format", "bytes", true},
    {"data.eval_fraction", "0.1", true},
    {"data.batch_size", "3", true},
    {"data.sequence_length", "0", true},
    {"data.shuffle", "true", true},
    {"data.drop_last", "true", true},
    {"data.prefetch", "2", true},
    {"data.even_batches", "true", true},
    {"data.join_uneven_inputs", "false", true},
    {"data.dispatch_batches", "false", true},
    {"data.split_batches", "false", true},
    {"data.use_seedable_sampler", "true", true},
    {"data.packing", "none", true},
    {"precision.mixed_precision", "no", false},
    {"precision.param_dtype", "fp32", false},
    {"precision.reduce_dtype", "fp32", false},
    {"precision.buffer_dtype", "fp32", false},
    {"precision.keep_in_fp32", "[]", false},
    {"accumulation.num_steps", "1", true},
    {"accumulation.normalize", "batches", true},
    {"accumulation.sync_with_dataloader", "true", true},
    {"accumulation.sync_each_batch", "false", true},
    {"accumulation.adjust_scheduler", "true", true},
    {"memory.activation_checkpointing", "none", true},
    {"devices.kind", "cpu", true},
    {"devices.arch", "native", true},
    {"devices.threads", "0", true},
    {"devices.nodes", "1", true},
    {"devices.per_node", "1", true},
    {"devices.timeout", "600", true},
    {"devices.numa_affinity", "false", true},
    {"parallelism.reproducible", "off", true},
    {"parallelism.sync_batch_norm", "false", true},
    {"parallelism.ddp.comm_hook", "no", true},
    {"parallelism.ddp.comm_wrapper", "no", true},
    {"parallelism.ddp.divide_by_initial_world_size", "true", true},
    {"parallelism.ddp.bucket_cap_mb", "25.0", true},
    {"optimizer.name", "adamw", false},
    {"optimizer.lr", "0.001", true},
    {"optimizer.betas", "[0.9, 0.999]", false},
    {"optimizer.eps", "1e-08", false},
    {"optimizer.weight_decay", "0.01", false},
    {"optimizer.clip_grad_norm", "0.0", false},
    {"optimizer.state_dtype", "float32", false},
    {"schedule.name", "constant", true},
    {"schedule.warmup_steps", "0", true},
    {"schedule.wd_incr_style", "constant", true},
    {"training.steps", "3", true},
    {"training.seed", "11", false},
    {"training.device_specific_seed", "false", false},
    {"training.deterministic", "false", false},
    {"training.eval_interval", "0", true},
    {"training.eval_iters", "20", true},
    {"training.on_nonfinite", "stop", false},
    {"checkpoint.project_dir", "run", true},
    {"checkpoint.every", "0", true},
    {"checkpoint.automatic_checkpoint_naming", "true", true},
    {"checkpoint.iteration", "0", true},
    {"checkpoint.max_shard_size", "10GB", true},
    {"checkpoint.save_on_each_node", "false", true},
    {"checkpoint.background", "true", true},
    {"checkpoint.resume", "never", true},
    {"checkpoint.on_signal", "save", true},
    {"checkpoint.on_save_error", "stop", true},
    {"tracking.every", "10", true},
    {"tracking.grad_norms", "global", true},
    {"tracking.noise_scale", "false", true},
    {"the model's C", "1c180e8c004cf86d", true},
};

static const struct accel_program program = {
    .name = "gru_bytes",
    .summary = "0.00 M parameters, float32",
    .job_digest = "f44aa4d514cc661bfb71def233d0bb953e46ac69b326bf2e9d284ff10ae2570b",
    .generator = "accel-gen 0.1.0",
    .plan = "model     gru_bytes.c: 4,281 parameters\n"
            "step      3 x 2 = 6 tokens, 112 kFLOP (products 86 %)\n"
            "memory    0.1 MiB: weights 0.0, gradients 0.0, optimizer 0.0, activations 0.0, scratch 0.0\n"
            "aliased   0.0 MiB more of activations, in memory of gradients that are not written yet\n"
            "traffic   none (1 rank)\n",
    .steps = 3,
    .seed = 11,
    .data_seed = 11,
    .batch_size = 3,
    .micro_batches = 1,
    .sync_with_dataloader = false,
    .tensors = tensors,
    .n_tensors = 8,
    .states = states,
    .n_states = 3,
    .keys = keys,
    .n_keys = 74,
    .weights_bytes = sizeof(struct model_weights),
    .arena_bytes = sizeof(struct arena),
    .processor = ACCEL_PROCESSOR,
    .threads = 0,
    .source = {{"corpus.txt", ACCEL_BYTES}, {NULL, ACCEL_BYTES}},
    .eval_fraction = 0.1,
    .shuffle = true,
    .prefetch = 2,
    .sequence_length = 2,
    .vocabulary = 256,
    .features = 0,
    .label_is_class = true,
    .classes = 0,
    .log_every = 10,
    .eval_every = 0,
    .save_every = 0,
    .eval_iters = 20,
    .checkpoint = {.automatic_naming = true,
                   .iteration = 0,
                   .total_limit = 0,
                   .max_shard_bytes = 10000000000,
                   .copy_offset = 0,
                   .resume = "never",
                   .saves_on_signal = true,
                   .outlives_errors = false},
    .project_dir = "run",
};

/* A function of its own, so that the start looks at the processor before the first instruction that it may lack. */
static __attribute__((noinline)) int train(struct accel_run *run) {
  arena = accel_arena(run);
  accel_fill_weights(run, &arena->weights);
  int64_t at = accel_first_step(run);
  while (at < accel_steps(run)) {
    const int64_t until = accel_next_event(run, at);
    for (; at < until; at++) step(run, at);
    accel_check(product_status, "oneDNN could not multiply matrices");
    accel_handle_events(run, at, report);
  }
  return accel_finish(run);
}

int main(int argc, char **argv) {
  return train(accel_start(&program, argc, argv));
}
