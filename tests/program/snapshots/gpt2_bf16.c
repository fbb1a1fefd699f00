/* gpt2: a training program for one job, written by accel-gen 0.2.0.
 *
 * job       job.yaml, 8f602793bce1088fc50be13e726a93faf9c5285e443a9fba48b80355f1aa6c2a
 * model     gpt2.c: 2 layers, 3,840 parameters (1 tied)
 * step      3 x 4 = 12 tokens, 302 kFLOP (matmuls 87 %)
 * memory    0.1 MiB: weights 0.0, gradients 0.0, optimizer 0.0, activations 0.0, scratch 0.0
 * precision bfloat16 by autocast, weights and their gradients in float32
 * traffic   none (1 rank)
 *
 * Build: cc -std=c17 -O3 -march=native -fopenmp trainer.c -o trainer $(pkg-config --cflags --libs accel-runtime) */
#include <accel/cpu/bf16.h>
#include <accel/cpu/kernels.h>
#include <accel/cpu/matmul.h>
#include <accel/gemm.h>
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

struct model_weights {
  alignas(64) float wpe_weight[4 * 8];
  alignas(64) float wte_weight[256 * 8];
  alignas(64) float ln_f_weight[8];
  alignas(64) float ln_f_bias[8];
  struct block_weights h[2];
};
static_assert(sizeof(struct model_weights) == 15872, "as planned");

struct attend_weights_bf16 {
  alignas(32) accel_bf16 c_attn_weight[8 * 24];
  alignas(32) accel_bf16 c_attn_bias[24];
  alignas(32) accel_bf16 c_proj_weight[8 * 8];
  alignas(32) accel_bf16 c_proj_bias[8];
};
static_assert(sizeof(struct attend_weights_bf16) == 608, "as planned");

struct mlp_weights_bf16 {
  alignas(32) accel_bf16 c_fc_weight[8 * 32];
  alignas(32) accel_bf16 c_fc_bias[32];
  alignas(32) accel_bf16 c_proj_weight[32 * 8];
  alignas(32) accel_bf16 c_proj_bias[8];
};
static_assert(sizeof(struct mlp_weights_bf16) == 1120, "as planned");

struct block_weights_bf16 {
  alignas(32) accel_bf16 ln_1_weight[8];
  alignas(32) accel_bf16 ln_1_bias[8];
  alignas(32) accel_bf16 ln_2_weight[8];
  alignas(32) accel_bf16 ln_2_bias[8];
  struct attend_weights_bf16 attn;
  struct mlp_weights_bf16 mlp;
};
static_assert(sizeof(struct block_weights_bf16) == 1856, "as planned");

struct model_weights_bf16 {
  alignas(32) accel_bf16 wpe_weight[4 * 8];
  alignas(32) accel_bf16 wte_weight[256 * 8];
  alignas(32) accel_bf16 ln_f_weight[8];
  alignas(32) accel_bf16 ln_f_bias[8];
  struct block_weights_bf16 h[2];
};
static_assert(sizeof(struct model_weights_bf16) == 7936, "as planned");

/* What attend_forward keeps for its backward. */
struct attend_saved {
  alignas(64) accel_bf16 y[12 * 8];    /* [3][4][8] */
  alignas(64) accel_bf16 qkv[12 * 24]; /* [3][4][24] */
  alignas(64) float y_lse[6 * 4];      /* [3][2][4] */
};
static_assert(sizeof(struct attend_saved) == 896, "as planned");

/* What mlp_forward keeps for its backward. */
struct mlp_saved {
  alignas(64) accel_bf16 add[12 * 32]; /* [3][4][32] */
  alignas(64) accel_bf16 h[12 * 32];   /* [3][4][32] */
};
static_assert(sizeof(struct mlp_saved) == 1536, "as planned");

/* What block_forward keeps for its backward. */
struct block_saved {
  alignas(64) accel_bf16 layer_norm[12 * 8]; /* [3][4][8] */
  alignas(64) float layer_norm_mean[12];
  alignas(64) float layer_norm_rstd[12];
  alignas(64) float x_2[12 * 8];               /* [3][4][8] */
  alignas(64) accel_bf16 layer_norm_2[12 * 8]; /* [3][4][8] */
  alignas(64) float layer_norm_2_mean[12];
  alignas(64) float layer_norm_2_rstd[12];
  struct attend_saved attend;
  struct mlp_saved mlp;
};
static_assert(sizeof(struct block_saved) == 3456, "as planned");

/* What predict_forward keeps for its backward. */
struct predict_saved {
  alignas(64) float x_of_block[3][96];
  alignas(64) accel_bf16 x_4[12 * 8]; /* [3][4][8] */
  alignas(64) float x_4_mean[12];
  alignas(64) float x_4_rstd[12];
  struct block_saved block[2];
};
static_assert(sizeof(struct predict_saved) == 8384, "as planned");

/* What model_forward keeps for its backward. */
struct model_saved {
  alignas(64) accel_bf16 predict[12 * 256]; /* [3][4][256] */
  alignas(64) float cross_entropy_lse[12];
  alignas(64) float cross_entropy_scale[1];
  struct predict_saved predict_saved;
};
static_assert(sizeof(struct model_saved) == 14656, "as planned");

/* What block_forward needs while it runs; members of a union are never in use together. */
struct block_forward_scratch {
  union {
    alignas(64) accel_bf16 a[12 * 8]; /* [3][4][8] */
    alignas(64) accel_bf16 m[12 * 8]; /* [3][4][8] */
  };
};
static_assert(sizeof(struct block_forward_scratch) == 192, "as planned");

/* What predict_forward needs while it runs; members of a union are never in use together. */
struct predict_forward_scratch {
  union {
    alignas(64) float x[12 * 8]; /* [3][4][8] */
    struct block_forward_scratch block_forward;
  };
};
static_assert(sizeof(struct predict_forward_scratch) == 384, "as planned");

/* What model_forward needs while it runs. */
struct model_forward_scratch {
  struct predict_forward_scratch predict_forward;
};
static_assert(sizeof(struct model_forward_scratch) == 384, "as planned");

/* What attend_evaluation_forward needs while it runs. */
struct attend_evaluation_forward_scratch {
  alignas(64) accel_bf16 matmul[12 * 24]; /* [3][4][24] */
  alignas(64) accel_bf16 y[12 * 8];       /* [3][4][8] */
  alignas(64) float y_lse[6 * 4];         /* [3][2][4] */
};
static_assert(sizeof(struct attend_evaluation_forward_scratch) == 896, "as planned");

/* What mlp_evaluation_forward needs while it runs. */
struct mlp_evaluation_forward_scratch {
  alignas(64) accel_bf16 matmul[12 * 32]; /* [3][4][32] */
};
static_assert(sizeof(struct mlp_evaluation_forward_scratch) == 768, "as planned");

/* What block_evaluation_forward needs while it runs; members of a union are never in use together. */
struct block_evaluation_forward_scratch {
  union {
    alignas(64) float layer_norm_mean[12];
    alignas(64) float layer_norm_2_mean[12];
    struct attend_evaluation_forward_scratch attend_evaluation_forward;
    struct mlp_evaluation_forward_scratch mlp_evaluation_forward;
  };
  union {
    alignas(64) accel_bf16 layer_norm[12 * 8];   /* [3][4][8] */
    alignas(64) accel_bf16 layer_norm_2[12 * 8]; /* [3][4][8] */
  };
  union {
    alignas(64) accel_bf16 a[12 * 8]; /* [3][4][8] */
    alignas(64) accel_bf16 m[12 * 8]; /* [3][4][8] */
    alignas(64) float layer_norm_rstd[12];
    alignas(64) float layer_norm_2_rstd[12];
  };
};
static_assert(sizeof(struct block_evaluation_forward_scratch) == 1280, "as planned");

/* What predict_evaluation_forward needs while it runs; members of a union are never in use together. */
struct predict_evaluation_forward_scratch {
  alignas(64) float x_of_block_evaluation[2][96];
  alignas(64) float x_4_mean[12];
  alignas(64) float x_4_rstd[12];
  union {
    alignas(64) float x[12 * 8];        /* [3][4][8] */
    alignas(64) accel_bf16 x_4[12 * 8]; /* [3][4][8] */
    struct block_evaluation_forward_scratch block_evaluation_forward;
  };
};
static_assert(sizeof(struct predict_evaluation_forward_scratch) == 2176, "as planned");

/* What model_evaluation_forward needs while it runs; members of a union are never in use together. */
struct model_evaluation_forward_scratch {
  alignas(64) accel_bf16 predict[12 * 256]; /* [3][4][256] */
  alignas(64) float cross_entropy_scale[1];
  union {
    alignas(64) float cross_entropy_lse[12];
    struct predict_evaluation_forward_scratch predict_evaluation_forward;
  };
};
static_assert(sizeof(struct model_evaluation_forward_scratch) == 8384, "as planned");

/* What attend_backward needs while it runs. */
struct attend_backward_scratch {
  alignas(64) accel_bf16 d_qkv[12 * 24]; /* [3][4][24] */
  alignas(64) accel_bf16 d_y[12 * 8];    /* [3][4][8] */
};
static_assert(sizeof(struct attend_backward_scratch) == 768, "as planned");

/* What mlp_backward needs while it runs. */
struct mlp_backward_scratch {
  alignas(64) accel_bf16 d_h[12 * 32]; /* [3][4][32] */
};
static_assert(sizeof(struct mlp_backward_scratch) == 768, "as planned");

/* What block_backward needs while it runs; members of a union are never in use together. */
struct block_backward_scratch {
  union {
    alignas(64) float layer_norm_backward_2[12 * 8]; /* [3][4][8] */
    struct mlp_backward_scratch mlp_backward;
    struct attend_backward_scratch attend_backward;
  };
  union {
    alignas(64) accel_bf16 d_dropout_2[12 * 8]; /* [3][4][8] */
    alignas(64) accel_bf16 d_dropout[12 * 8];   /* [3][4][8] */
  };
  union {
    alignas(64) accel_bf16 d_layer_norm_2[12 * 8]; /* [3][4][8] */
    alignas(64) accel_bf16 d_layer_norm[12 * 8];   /* [3][4][8] */
  };
};
static_assert(sizeof(struct block_backward_scratch) == 1152, "as planned");

/* What predict_backward needs while it runs; members of a union are never in use together. */
struct predict_backward_scratch {
  alignas(64) float d_add_of_block_backward[2][96];
  union {
    alignas(64) float d_add[12 * 8];      /* [3][4][8] */
    alignas(64) accel_bf16 d_x_4[12 * 8]; /* [3][4][8] */
    struct block_backward_scratch block_backward;
  };
};
static_assert(sizeof(struct predict_backward_scratch) == 1920, "as planned");

/* What model_backward needs while it runs; members of a union are never in use together. */
struct model_backward_scratch {
  union {
    alignas(64) float d_cross_entropy[1];
    struct predict_backward_scratch predict_backward;
  };
};
static_assert(sizeof(struct model_backward_scratch) == 1920, "as planned");

struct arena {
  union {
    struct model_weights weights;
    float all_weights[3968];
  };
  union {
    struct model_weights gradients;
    float all_gradients[3968];
  };
  union {
    struct model_weights_bf16 weights_bf16;
    accel_bf16 all_weights_bf16[3968];
  };
  float moment_1[3968];
  float moment_2[3968];
  alignas(64) int32_t tokens[3 * 4];
  alignas(64) int32_t targets[3 * 4];
  alignas(64) float result[1]; /* the loss */
  struct model_saved saved;
  union {
    struct model_forward_scratch forward;
    struct model_backward_scratch backward;
    struct model_evaluation_forward_scratch evaluation;
  } scratch;
};
static_assert(sizeof(struct arena) == 94656, "as planned");

static struct arena *arena;

/* ---- Kernels ---- */

/* y = a b: [12][8] x [8][24]. */
static struct accel_gemm matmul_bf16_3x4x8x24_gemm = {
    .type = ACCEL_BF16,
    .result = ACCEL_BF16,
    .accumulate = false,
    .rows = 12,
    .columns = 24,
    .depth = 8,
    .y_row = 24,
    .a_row = 8,
    .a_column = 1,
    .b_row = 24,
    .b_column = 1,
};
static void matmul_bf16_3x4x8x24(accel_bf16 y[static 12 * 24], const accel_bf16 a[static 12 * 8],
                                 const accel_bf16 b[static 8 * 24]) {
  accel_multiply(&matmul_bf16_3x4x8x24_gemm, y, a, b);
}

static void add_bf16_3x4x24(accel_bf16 y[static 12 * 24], const accel_bf16 x0[static 12 * 24],
                            const accel_bf16 x1[static 24]) {
  for (size_t i = 0; i < 12; i++)
#pragma omp simd
    for (size_t j = 0; j < 24; j++) {
      y[i * 24 + j] = accel_narrow(accel_widen(x0[i * 24 + j]) + accel_widen(x1[j]));
    }
}

/* y = softmax(0.5 q k^T, causal) v, lse = ln of the sum of e^scores. */
static void attention_bf16_3x2x4x4(accel_bf16 y[static 96], float lse[static 6 * 4], const accel_bf16 q[static 272],
                                   const accel_bf16 k[static 272], const accel_bf16 v[static 272]) {
#pragma omp parallel for collapse(3)
  for (size_t b = 0; b < 3; b++)
    for (size_t h = 0; h < 2; h++)
      for (size_t first = 0; first < 4; first += 32) {
        const accel_bf16 *qh = q + b * 96 + h * 4, *kh = k + b * 96 + h * 4;
        const accel_bf16 *vh = v + b * 96 + h * 4;
        accel_bf16 *yh = y + b * 32 + h * 4;
        const size_t queries = 4 - first < 32 ? 4 - first : 32;
        alignas(64) accel_bf16 rows[32][32] = {0}, qt[16][64];
        alignas(64) accel_bf16 p[4][32], p_pairs[2][64], v_pairs[2][32] = {0};
        alignas(64) float s[4][32], o[32][16] = {0}, highest[32], sum[32];
        for (size_t i = 0; i < queries; i++) memcpy(rows[i], qh + first * 24 + i * 24, 4 * sizeof(accel_bf16));
        accel_transpose_row_pairs(16, rows[0], qt);
        accel_begin_queries(highest, sum, -INFINITY);
        const size_t keys = first + 32 < 4 ? first + 32 : 4;
        {
          const size_t start = 0, count = keys;
          const size_t diagonal = first - start; /* query i sees the block's keys up to diagonal + i */
          const size_t wide = diagonal + 16 < count ? diagonal + 16 : count;
          const accel_bf16 *kb = kh + start * 24, *vb = vh + start * 24;
          size_t j;
          accel_score_pair_tiles(4, 4, count, wide, kb, 24, qt, s, 0.5f);
          accel_hide_later(s, count, diagonal);
          accel_raise_highest(highest, s, count);
          for (j = 0; j < wide; j++)
#pragma omp simd
            for (size_t i = 0; i < 32; i++) {
              const float e = accel_exp(s[j][i] - highest[i]);
              s[j][i] = e;
              sum[i] += e;
            }
          for (; j < count; j++)
#pragma omp simd
            for (size_t i = 16; i < 32; i++) {
              const float e = accel_exp(s[j][i] - highest[i]);
              s[j][i] = e;
              sum[i] += e;
            }
          for (j = 0; j < count; j++) accel_narrow_row(s[j], p[j]);
          accel_pair_all_rows(32, count, p[0], 32, p_pairs[0], 64);
          accel_pair_all_rows(4, count, vb, 24, v_pairs[0], 32);
          accel_gather_pair_tiles(true, 16, count, diagonal, p_pairs, v_pairs[0], o[0]);
        }
        accel_end_queries(queries, highest, sum, lse + (b * 2 + h) * 4 + first, NULL);
        for (size_t i = 0; i < queries; i++)
          for (size_t d = 0; d < 4; d++) yh[(first + i) * 8 + d] = accel_narrow(o[i][d] * sum[i]);
      }
}

/* y = a b: [12][8] x [8][8]. */
static struct accel_gemm matmul_bf16_3x4x8_gemm = {
    .type = ACCEL_BF16,
    .result = ACCEL_BF16,
    .accumulate = false,
    .rows = 12,
    .columns = 8,
    .depth = 8,
    .y_row = 8,
    .a_row = 8,
    .a_column = 1,
    .b_row = 8,
    .b_column = 1,
};
static void matmul_bf16_3x4x8(accel_bf16 y[static 12 * 8], const accel_bf16 a[static 12 * 8],
                              const accel_bf16 b[static 8 * 8]) {
  accel_multiply(&matmul_bf16_3x4x8_gemm, y, a, b);
}

static void add_bf16_3x4x8(accel_bf16 y[static 12 * 8], const accel_bf16 x0[static 12 * 8],
                           const accel_bf16 x1[static 8]) {
  for (size_t i = 0; i < 12; i++)
#pragma omp simd
    for (size_t j = 0; j < 8; j++) {
      y[i * 8 + j] = accel_narrow(accel_widen(x0[i * 8 + j]) + accel_widen(x1[j]));
    }
}

/* y = a b: [12][8] x [8][32]. */
static struct accel_gemm matmul_bf16_3x4x8x32_gemm = {
    .type = ACCEL_BF16,
    .result = ACCEL_BF16,
    .accumulate = false,
    .rows = 12,
    .columns = 32,
    .depth = 8,
    .y_row = 32,
    .a_row = 8,
    .a_column = 1,
    .b_row = 32,
    .b_column = 1,
};
static void matmul_bf16_3x4x8x32(accel_bf16 y[static 12 * 32], const accel_bf16 a[static 12 * 8],
                                 const accel_bf16 b[static 8 * 32]) {
  accel_multiply(&matmul_bf16_3x4x8x32_gemm, y, a, b);
}

static void add_gelu_tanh_bf16_3x4x32(accel_bf16 y0[static 12 * 32], accel_bf16 y1[static 12 * 32],
                                      const accel_bf16 x0[static 12 * 32], const accel_bf16 x1[static 32]) {
  for (size_t i = 0; i < 12; i++)
#pragma omp simd
    for (size_t j = 0; j < 32; j++) {
      const float t0 = accel_widen(x0[i * 32 + j]) + accel_widen(x1[j]);
      y1[i * 32 + j] = accel_narrow(t0 * accel_gelu_gate(t0));
      y0[i * 32 + j] = accel_narrow(t0);
    }
}

/* y = a b: [12][32] x [32][8]. */
static struct accel_gemm matmul_bf16_3x4x32x8_gemm = {
    .type = ACCEL_BF16,
    .result = ACCEL_BF16,
    .accumulate = false,
    .rows = 12,
    .columns = 8,
    .depth = 32,
    .y_row = 8,
    .a_row = 32,
    .a_column = 1,
    .b_row = 8,
    .b_column = 1,
};
static void matmul_bf16_3x4x32x8(accel_bf16 y[static 12 * 8], const accel_bf16 a[static 12 * 32],
                                 const accel_bf16 b[static 32 * 8]) {
  accel_multiply(&matmul_bf16_3x4x32x8_gemm, y, a, b);
}

/* y = (x - mean) rstd weight + bias, rstd = 1 / sqrt(variance + 1e-05), row by row. */
static void layer_norm_bf16_3x4x8(accel_bf16 y[static 12 * 8], float mean[static 12], float rstd[static 12],
                                  const float x[static 12 * 8], const float weight[static 8],
                                  const float bias[static 8]) {
#pragma omp parallel for
  for (size_t r = 0; r < 12; r++) {
    const float *xr = x + r * 8;
    accel_bf16 *yr = y + r * 8;
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
    for (size_t c = 0; c < 8; c++) yr[c] = accel_narrow((xr[c] - m) * s * weight[c] + bias[c]);
  }
}

/* y[i] = x[i] / (1 - p) where word i % 4 of Philox at counter (i / 4, site 0) is at least p 2^32, else 0; p = 0.1. */
static void dropout_bf16_3x4x8(accel_bf16 y[static 12 * 8], const accel_bf16 x[static 12 * 8], uint64_t stream) {
#pragma omp parallel for
  for (size_t first = 0; first < 96; first += 64) {
    uint32_t words[64];
#pragma omp simd
    for (uint32_t j = 0; j < 16; j++) accel_philox(words + 4 * j, stream, first / 4 + j, 0);
    const size_t count = 96 - first < 64 ? 96 - first : 64;
#pragma omp simd
    for (size_t j = 0; j < count; j++) {
      const size_t i = first + j;
      y[i] = accel_narrow(words[j] < 429496730u ? 0.0f : accel_widen(x[i]) * 1.1111111111111112f);
    }
  }
}

static void add_bf16_3x4x8_2(float y[static 12 * 8], const float x0[static 12 * 8],
                             const accel_bf16 x1[static 12 * 8]) {
#pragma omp simd
  for (size_t i = 0; i < 96; i++) {
    y[i] = x0[i] + accel_widen(x1[i]);
  }
}

/* y[i] = x[i] / (1 - p) where word i % 4 of Philox at counter (i / 4, site 1) is at least p 2^32, else 0; p = 0.1. */
static void dropout_bf16_3x4x8_2(accel_bf16 y[static 12 * 8], const accel_bf16 x[static 12 * 8], uint64_t stream) {
#pragma omp parallel for
  for (size_t first = 0; first < 96; first += 64) {
    uint32_t words[64];
#pragma omp simd
    for (uint32_t j = 0; j < 16; j++) accel_philox(words + 4 * j, stream, first / 4 + j, 1);
    const size_t count = 96 - first < 64 ? 96 - first : 64;
#pragma omp simd
    for (size_t j = 0; j < count; j++) {
      const size_t i = first + j;
      y[i] = accel_narrow(words[j] < 429496730u ? 0.0f : accel_widen(x[i]) * 1.1111111111111112f);
    }
  }
}

/* y[r][:] = weight[tokens[r]][:]. */
static void embedding_256x8(float y[static 12 * 8], const float weight[static 256 * 8],
                            const int32_t tokens[static 3 * 4]) {
#pragma omp parallel for
  for (size_t r = 0; r < 12; r++) memcpy(y + r * 8, weight + (size_t)tokens[r] * 8, 8 * sizeof(float));
}

static void add_3x4x8(float y[static 12 * 8], const float x0[static 12 * 8], const float x1[static 4 * 8]) {
  for (size_t i = 0; i < 3; i++)
#pragma omp simd
    for (size_t j = 0; j < 32; j++) {
      y[i * 32 + j] = x0[i * 32 + j] + x1[j];
    }
}

/* y[i] = x[i] / (1 - p) where word i % 4 of Philox at counter (i / 4, site 0) is at least p 2^32, else 0; p = 0.1. */
static void dropout_3x4x8(float y[static 12 * 8], const float x[static 12 * 8], uint64_t stream) {
#pragma omp parallel for
  for (size_t first = 0; first < 96; first += 64) {
    uint32_t words[64];
#pragma omp simd
    for (uint32_t j = 0; j < 16; j++) accel_philox(words + 4 * j, stream, first / 4 + j, 0);
    const size_t count = 96 - first < 64 ? 96 - first : 64;
#pragma omp simd
    for (size_t j = 0; j < count; j++) {
      const size_t i = first + j;
      y[i] = words[j] < 429496730u ? 0.0f : x[i] * 1.1111111111111112f;
    }
  }
}

/* y = a b: [12][8] x [8][256]. */
static struct accel_gemm matmul_nt_bf16_3x4x8x256_gemm = {
    .type = ACCEL_BF16,
    .result = ACCEL_BF16,
    .accumulate = false,
    .rows = 12,
    .columns = 256,
    .depth = 8,
    .y_row = 256,
    .a_row = 8,
    .a_column = 1,
    .b_row = 1,
    .b_column = 8,
};
static void matmul_nt_bf16_3x4x8x256(accel_bf16 y[static 12 * 256], const accel_bf16 a[static 12 * 8],
                                     const accel_bf16 b[static 2048]) {
  accel_multiply(&matmul_nt_bf16_3x4x8x256_gemm, y, a, b);
}

/* loss = the mean of lse[r] - logits[r][targets[r]] over the targets that are not -100; lse = ln sum e^logits. */
static void cross_entropy_bf16_3x4x256(float loss[static 1], float lse[static 12], float scale[static 1],
                                       const accel_bf16 logits[static 12 * 256], const int32_t targets[static 3 * 4]) {
  double losses[2];
  int counts[2];
  for (size_t chunk = 0; chunk < 2; chunk++) {
    losses[chunk] = 0.0;
    counts[chunk] = 0;
    for (size_t r = chunk * 8; r < (chunk + 1 == 2 ? 12 : (chunk + 1) * 8); r++) {
      float x[256];
      for (size_t v = 0; v < 256; v++) x[v] = accel_widen(logits[r * 256 + v]);
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
  for (size_t chunk = 0; chunk < 2; chunk++) {
    total += losses[chunk];
    count += counts[chunk];
  }
  scale[0] = 1.0f / (float)count;
  loss[0] = (float)(total / count);
}

static void add_gelu_tanh_bf16_3x4x32_2(accel_bf16 y[static 12 * 32], const accel_bf16 x0[static 12 * 32],
                                        const accel_bf16 x1[static 32]) {
  for (size_t i = 0; i < 12; i++)
#pragma omp simd
    for (size_t j = 0; j < 32; j++) {
      const float t0 = accel_widen(x0[i * 32 + j]) + accel_widen(x1[j]);
      y[i * 32 + j] = accel_narrow(t0 * accel_gelu_gate(t0));
    }
}

/* y = the sum of x over axes 0, 1. */
static void sum_bf16_3x4x8(float y[static 8], const accel_bf16 x[static 12 * 8]) {
  for (size_t first = 0; first < 8; first += 8) {
    enum { WIDTH = 8 };
    float sums[8] = {0.0f};
    for (size_t r = 0; r < 12; r++) {
      const accel_bf16 *xr = x + r * 8 + first;
#pragma omp simd
      for (size_t c = 0; c < WIDTH; c++) sums[c] += accel_widen(xr[c]);
    }
    for (size_t c = 0; c < WIDTH; c++) y[first + c] = sums[c];
  }
}

/* y = a b: [12][8] x [8][8]. */
static struct accel_gemm matmul_nt_bf16_3x4x8_gemm = {
    .type = ACCEL_BF16,
    .result = ACCEL_BF16,
    .accumulate = false,
    .rows = 12,
    .columns = 8,
    .depth = 8,
    .y_row = 8,
    .a_row = 8,
    .a_column = 1,
    .b_row = 1,
    .b_column = 8,
};
static void matmul_nt_bf16_3x4x8(accel_bf16 y[static 12 * 8], const accel_bf16 a[static 12 * 8],
                                 const accel_bf16 b[static 64]) {
  accel_multiply(&matmul_nt_bf16_3x4x8_gemm, y, a, b);
}

/* y = a b: [8][12] x [12][8]. */
static struct accel_gemm matmul_tn_bf16_8x12x8_gemm = {
    .type = ACCEL_BF16,
    .result = ACCEL_F32,
    .accumulate = false,
    .rows = 8,
    .columns = 8,
    .depth = 12,
    .y_row = 8,
    .a_row = 1,
    .a_column = 8,
    .b_row = 8,
    .b_column = 1,
};
static void matmul_tn_bf16_8x12x8(float y[static 8 * 8], const accel_bf16 a[static 96],
                                  const accel_bf16 b[static 12 * 8]) {
  accel_multiply(&matmul_tn_bf16_8x12x8_gemm, y, a, b);
}

/* With p = e^(scale q k^T - lse) and ds = scale p (dy v^T - rowsum(dy y)): dq = ds k, dk = ds^T q, dv = p^T dy. */
static void attention_backward_bf16_3x2x4x4(accel_bf16 dq[static 272], accel_bf16 dk[static 272],
                                            accel_bf16 dv[static 272], const accel_bf16 dy[static 96],
                                            const accel_bf16 q[static 272], const accel_bf16 k[static 272],
                                            const accel_bf16 v[static 272], const accel_bf16 y[static 96],
                                            const float lse[static 6 * 4]) {
#pragma omp parallel for collapse(2)
  for (size_t b = 0; b < 3; b++)
    for (size_t h = 0; h < 2; h++) {
      const accel_bf16 *kh = k + b * 96 + h * 4, *vh = v + b * 96 + h * 4;
      accel_bf16 *dkh = dk + b * 96 + h * 4;
      accel_bf16 *dvh = dv + b * 96 + h * 4;
      const accel_bf16 *qh = q + b * 96 + h * 4, *yh = y + b * 32 + h * 4;
      const accel_bf16 *dyh = dy + b * 32 + h * 4;
      const float *lseh = lse + (b * 2 + h) * 4;
      accel_bf16 *dqh = dq + b * 96 + h * 4;
      float dkp[4][16] = {0}, dvp[4][16] = {0};
      for (size_t first = 0; first < 4; first += 32) {
        const size_t queries = 4 - first < 32 ? 4 - first : 32;
        alignas(64) accel_bf16 q_rows[32][32] = {0}, dy_rows[32][32] = {0}, qt[16][64], dyt[16][64];
        alignas(64) accel_bf16 q_pairs[16][32], dy_pairs[16][32];
        alignas(64) float dq_rows[32][16] = {0}, top[32] = {0}, dot[32] = {0};
        for (size_t i = 0; i < queries; i++) memcpy(q_rows[i], qh + first * 24 + i * 24, 4 * sizeof(accel_bf16));
        for (size_t i = 0; i < queries; i++) memcpy(dy_rows[i], dyh + first * 8 + i * 8, 4 * sizeof(accel_bf16));
        accel_transpose_row_pairs(16, q_rows[0], qt);
        accel_transpose_row_pairs(16, dy_rows[0], dyt);
        for (size_t i = 0; i < 32; i += 2) {
          accel_pair_rows(16, q_rows[i], q_rows[i + 1], q_pairs[i / 2]);
          accel_pair_rows(16, dy_rows[i], dy_rows[i + 1], dy_pairs[i / 2]);
        }
        for (size_t i = 0; i < queries; i++) {
          float sums[16] = {0.0f};
          for (size_t j = 0; j < 4; j++) {
            const size_t c = j;
            sums[j] += accel_widen(dy_rows[i][c]) * accel_widen(yh[(first + i) * 8 + c]);
          }
          dot[i] = accel_sum_lanes(sums);
          top[i] = lseh[first + i];
        }
        const size_t keys = first + 32 < 4 ? first + 32 : 4;
        {
          const size_t start = 0, count = keys;
          const size_t diagonal = first - start; /* query i sees the block's keys up to diagonal + i */
          const size_t wide = diagonal + 16 < count ? diagonal + 16 : count;
          const accel_bf16 *kb = kh + start * 24, *vb = vh + start * 24;
          size_t j;
          alignas(64) accel_bf16 p[4][32], ds[4][32], ds_pairs[2][64], k_pairs[2][32] = {0};
          alignas(64) float s[4][32], dp[4][32];
          accel_score_pair_tiles(4, 4, count, wide, kb, 24, qt, s, 0.5f);
          accel_hide_later(s, count, diagonal);
          accel_score_pair_tiles(4, 4, count, wide, vb, 24, dyt, dp, 1.0f);
          /* No matmul made these, and whole rows are rounded. */
          for (j = wide; j < count; j++) memset(dp[j], 0, 16 * sizeof(float));
          for (j = 0; j < wide; j++)
#pragma omp simd
            for (size_t i = 0; i < 32; i++) {
              s[j][i] = accel_exp(s[j][i] - top[i]);
              dp[j][i] = s[j][i] * (dp[j][i] - dot[i]) * 0.5f;
            }
          for (; j < count; j++)
#pragma omp simd
            for (size_t i = 16; i < 32; i++) {
              s[j][i] = accel_exp(s[j][i] - top[i]);
              dp[j][i] = s[j][i] * (dp[j][i] - dot[i]) * 0.5f;
            }
          for (j = 0; j < count; j++) {
            accel_narrow_row(s[j], p[j]);
            accel_narrow_row(dp[j], ds[j]);
          }
          accel_pair_all_rows(4, count, kb, 24, k_pairs[0], 32);
          accel_pair_all_rows(32, count, ds[0], 32, ds_pairs[0], 64);
          accel_gather_pair_tiles(true, 16, count, diagonal, ds_pairs, k_pairs[0], dq_rows[0]);
          accel_scatter_pair_tiles(true, 4, 16, count, diagonal, p, dy_pairs[0], dvp[start], 16);
          accel_scatter_pair_tiles(true, 4, 16, count, diagonal, ds, q_pairs[0], dkp[start], 16);
        }
        for (size_t i = 0; i < queries; i++)
          for (size_t d = 0; d < 4; d++) dqh[(first + i) * 24 + d] = accel_narrow(dq_rows[i][d]);
      }
      for (size_t j = 0; j < 4; j++)
        for (size_t d = 0; d < 4; d++) dkh[j * 24 + d] = accel_narrow(dkp[j][d]);
      for (size_t j = 0; j < 4; j++)
        for (size_t d = 0; d < 4; d++) dvh[j * 24 + d] = accel_narrow(dvp[j][d]);
    }
}

/* y = the sum of x over axes 0, 1. */
static void sum_bf16_3x4x24(float y[static 24], const accel_bf16 x[static 12 * 24]) {
  for (size_t first = 0; first < 24; first += 24) {
    enum { WIDTH = 24 };
    float sums[24] = {0.0f};
    for (size_t r = 0; r < 12; r++) {
      const accel_bf16 *xr = x + r * 24 + first;
#pragma omp simd
      for (size_t c = 0; c < WIDTH; c++) sums[c] += accel_widen(xr[c]);
    }
    for (size_t c = 0; c < WIDTH; c++) y[first + c] = sums[c];
  }
}

/* y = a b: [12][24] x [24][8]. */
static struct accel_gemm matmul_nt_bf16_3x4x24x8_gemm = {
    .type = ACCEL_BF16,
    .result = ACCEL_BF16,
    .accumulate = false,
    .rows = 12,
    .columns = 8,
    .depth = 24,
    .y_row = 8,
    .a_row = 24,
    .a_column = 1,
    .b_row = 1,
    .b_column = 24,
};
static void matmul_nt_bf16_3x4x24x8(accel_bf16 y[static 12 * 8], const accel_bf16 a[static 12 * 24],
                                    const accel_bf16 b[static 192]) {
  accel_multiply(&matmul_nt_bf16_3x4x24x8_gemm, y, a, b);
}

/* y = a b: [8][12] x [12][24]. */
static struct accel_gemm matmul_tn_bf16_8x12x24_gemm = {
    .type = ACCEL_BF16,
    .result = ACCEL_F32,
    .accumulate = false,
    .rows = 8,
    .columns = 24,
    .depth = 12,
    .y_row = 24,
    .a_row = 1,
    .a_column = 8,
    .b_row = 24,
    .b_column = 1,
};
static void matmul_tn_bf16_8x12x24(float y[static 8 * 24], const accel_bf16 a[static 96],
                                   const accel_bf16 b[static 12 * 24]) {
  accel_multiply(&matmul_tn_bf16_8x12x24_gemm, y, a, b);
}

/* y = a b: [12][8] x [8][32]. */
static struct accel_gemm matmul_nt_bf16_3x4x8x32_gemm = {
    .type = ACCEL_BF16,
    .result = ACCEL_BF16,
    .accumulate = false,
    .rows = 12,
    .columns = 32,
    .depth = 8,
    .y_row = 32,
    .a_row = 8,
    .a_column = 1,
    .b_row = 1,
    .b_column = 8,
};
static void matmul_nt_bf16_3x4x8x32(accel_bf16 y[static 12 * 32], const accel_bf16 a[static 12 * 8],
                                    const accel_bf16 b[static 256]) {
  accel_multiply(&matmul_nt_bf16_3x4x8x32_gemm, y, a, b);
}

/* y = a b: [32][12] x [12][8]. */
static struct accel_gemm matmul_tn_bf16_32x12x8_gemm = {
    .type = ACCEL_BF16,
    .result = ACCEL_F32,
    .accumulate = false,
    .rows = 32,
    .columns = 8,
    .depth = 12,
    .y_row = 8,
    .a_row = 1,
    .a_column = 32,
    .b_row = 8,
    .b_column = 1,
};
static void matmul_tn_bf16_32x12x8(float y[static 32 * 8], const accel_bf16 a[static 384],
                                   const accel_bf16 b[static 12 * 8]) {
  accel_multiply(&matmul_tn_bf16_32x12x8_gemm, y, a, b);
}

static void gelu_tanh_backward_bf16_3x4x32(accel_bf16 y[static 12 * 32], const accel_bf16 x0[static 12 * 32],
                                           const accel_bf16 x1[static 12 * 32]) {
  for (size_t first = 0; first < 384; first += 32) {
    alignas(64) float y_row[32];
#pragma omp simd
    for (size_t r = 0; r < 32; r++) {
      const size_t i = first + r;
      y_row[r] = accel_widen(x0[i]) * accel_gelu_slope(accel_widen(x1[i]));
    }
    accel_narrow_row(y_row, y + first);
  }
}

/* y = the sum of x over axes 0, 1. */
static void sum_bf16_3x4x32(float y[static 32], const accel_bf16 x[static 12 * 32]) {
  for (size_t first = 0; first < 32; first += 32) {
    enum { WIDTH = 32 };
    float sums[32] = {0.0f};
    for (size_t r = 0; r < 12; r++) {
      const accel_bf16 *xr = x + r * 32 + first;
#pragma omp simd
      for (size_t c = 0; c < WIDTH; c++) sums[c] += accel_widen(xr[c]);
    }
    for (size_t c = 0; c < WIDTH; c++) y[first + c] = sums[c];
  }
}

/* y = a b: [12][32] x [32][8]. */
static struct accel_gemm matmul_nt_bf16_3x4x32x8_gemm = {
    .type = ACCEL_BF16,
    .result = ACCEL_BF16,
    .accumulate = false,
    .rows = 12,
    .columns = 8,
    .depth = 32,
    .y_row = 8,
    .a_row = 32,
    .a_column = 1,
    .b_row = 1,
    .b_column = 32,
};
static void matmul_nt_bf16_3x4x32x8(accel_bf16 y[static 12 * 8], const accel_bf16 a[static 12 * 32],
                                    const accel_bf16 b[static 256]) {
  accel_multiply(&matmul_nt_bf16_3x4x32x8_gemm, y, a, b);
}

/* y = a b: [8][12] x [12][32]. */
static struct accel_gemm matmul_tn_bf16_8x12x32_gemm = {
    .type = ACCEL_BF16,
    .result = ACCEL_F32,
    .accumulate = false,
    .rows = 8,
    .columns = 32,
    .depth = 12,
    .y_row = 32,
    .a_row = 1,
    .a_column = 8,
    .b_row = 32,
    .b_column = 1,
};
static void matmul_tn_bf16_8x12x32(float y[static 8 * 32], const accel_bf16 a[static 96],
                                   const accel_bf16 b[static 12 * 32]) {
  accel_multiply(&matmul_tn_bf16_8x12x32_gemm, y, a, b);
}

static void cast_bfloat16_bf16_3x4x8(accel_bf16 y[static 12 * 8], const float x[static 12 * 8]) {
  for (size_t first = 0; first < 96; first += 32) {
    alignas(64) float y_row[32];
#pragma omp simd
    for (size_t r = 0; r < 32; r++) {
      const size_t i = first + r;
      y_row[r] = x[i];
    }
    accel_narrow_row(y_row, y + first);
  }
}

/* With n = (x - mean) rstd and g = dy weight: dx = rstd (g - avg(g) - n avg(g n)), dweight = sum dy n, dbias = sum dy.
 * The sums over rows go by chunks of 8 rows, so they do not depend on the number of threads. */
static void layer_norm_backward_bf16_3x4x8(float dx[static 12 * 8], float dweight[static 8], float dbias[static 8],
                                           const accel_bf16 dy[static 12 * 8], const float x[static 12 * 8],
                                           const float weight[static 8], const float mean[static 12],
                                           const float rstd[static 12]) {
  float weight_sum[2][8], bias_sum[2][8];
#pragma omp parallel
  {
#pragma omp for
    for (size_t chunk = 0; chunk < 2; chunk++) {
      float *const dw = weight_sum[chunk], *const db = bias_sum[chunk];
      for (size_t c = 0; c < 8; c++) dw[c] = db[c] = 0.0f;
      for (size_t r = chunk * 8; r < (chunk + 1 == 2 ? 12 : (chunk + 1) * 8); r++) {
        const float *xr = x + r * 8;
        const accel_bf16 *dyr = dy + r * 8;
        float *dxr = dx + r * 8;
        const float m = mean[r], s = rstd[r];
        float g_sums[16] = {0.0f}, gn_sums[16] = {0.0f};
        for (size_t j = 0; j < 8; j++) {
          const size_t c = j;
          const float n = (xr[c] - m) * s, d = accel_widen(dyr[c]), g = d * weight[c];
          dw[c] += d * n;
          db[c] += d;
          g_sums[j] += g;
          gn_sums[j] += g * n;
        }
        const float g_avg = accel_sum_lanes(g_sums) / 8.0f, gn_avg = accel_sum_lanes(gn_sums) / 8.0f;
#pragma omp simd
        for (size_t c = 0; c < 8; c++)
          dxr[c] = (accel_widen(dyr[c]) * weight[c] - g_avg - (xr[c] - m) * s * gn_avg) * s;
      }
    }
#pragma omp for
    for (size_t first = 0; first < 8; first += 8) {
      const size_t last = first + 8;
      for (size_t c = first; c < last; c++) dweight[c] = 0.0f;
      for (size_t chunk = 0; chunk < 2; chunk++)
        for (size_t c = first; c < last; c++) dweight[c] += weight_sum[chunk][c];
      for (size_t c = first; c < last; c++) dbias[c] = 0.0f;
      for (size_t chunk = 0; chunk < 2; chunk++)
        for (size_t c = first; c < last; c++) dbias[c] += bias_sum[chunk][c];
    }
  }
}

static void add_cast_bfloat16_bf16_3x4x8(float y0[static 12 * 8], accel_bf16 y1[static 12 * 8],
                                         const float x0[static 12 * 8], const float x1[static 12 * 8]) {
  for (size_t first = 0; first < 96; first += 32) {
    alignas(64) float y1_row[32];
#pragma omp simd
    for (size_t r = 0; r < 32; r++) {
      const size_t i = first + r;
      const float t0 = x0[i] + x1[i];
      y1_row[r] = t0;
      y0[i] = t0;
    }
    accel_narrow_row(y1_row, y1 + first);
  }
}

static void add_3x4x8_2(float y[static 12 * 8], const float x0[static 12 * 8], const float x1[static 12 * 8]) {
#pragma omp simd
  for (size_t i = 0; i < 96; i++) {
    y[i] = x0[i] + x1[i];
  }
}

/* y = a b: [12][256] x [256][8]. */
static struct accel_gemm matmul_bf16_3x4x256x8_gemm = {
    .type = ACCEL_BF16,
    .result = ACCEL_BF16,
    .accumulate = false,
    .rows = 12,
    .columns = 8,
    .depth = 256,
    .y_row = 8,
    .a_row = 256,
    .a_column = 1,
    .b_row = 8,
    .b_column = 1,
};
static void matmul_bf16_3x4x256x8(accel_bf16 y[static 12 * 8], const accel_bf16 a[static 12 * 256],
                                  const accel_bf16 b[static 256 * 8]) {
  accel_multiply(&matmul_bf16_3x4x256x8_gemm, y, a, b);
}

/* y^T = b^T a^T: [256][12] x [12][8]. */
static struct accel_gemm matmul_tn_bf16_8x12x256_gemm = {
    .type = ACCEL_BF16,
    .result = ACCEL_F32,
    .accumulate = false,
    .rows = 256,
    .columns = 8,
    .depth = 12,
    .y_row = 8,
    .a_row = 1,
    .a_column = 256,
    .b_row = 8,
    .b_column = 1,
};
static void matmul_tn_bf16_8x12x256(float y[static 2048], const accel_bf16 a[static 96],
                                    const accel_bf16 b[static 12 * 256]) {
  accel_multiply(&matmul_tn_bf16_8x12x256_gemm, y, b, a);
}

/* y = the sum of x over axes 0. */
static void sum_3x4x8(float y[static 4 * 8], const float x[static 12 * 8]) {
  for (size_t first = 0; first < 32; first += 32) {
    enum { WIDTH = 32 };
    float sums[32] = {0.0f};
    for (size_t r = 0; r < 3; r++) {
      const float *xr = x + r * 32 + first;
#pragma omp simd
      for (size_t c = 0; c < WIDTH; c++) sums[c] += xr[c];
    }
    for (size_t c = 0; c < WIDTH; c++) y[first + c] = sums[c];
  }
}

/* dweight[tokens[r]][:] += dy[r][:]. A thread has columns, not rows: sums keep the order of the tokens. */
static void embedding_backward_add_3x4x8(float dweight[static 256 * 8], const float dy[static 12 * 8],
                                         const int32_t tokens[static 3 * 4]) {
#pragma omp parallel
  {
#pragma omp for
    for (size_t first = 0; first < 8; first += 8) {
      const size_t count = 8;
      for (size_t r = 0; r < 12; r++) {
        const float *from = dy + r * 8 + first;
        float *to = dweight + (size_t)tokens[r] * 8 + first;
#pragma omp simd
        for (size_t c = 0; c < count; c++) to[c] += from[c];
      }
    }
  }
}

static void constant_1(float y[static 1]) {
  y[0] = 1.0f;
}

/* dlogits = d_loss scale (e^(logits - lse) - 1 at the target); rows whose target is -100 are 0. */
static void cross_entropy_backward_bf16_1(accel_bf16 dlogits[static 12 * 256], const float d_loss[static 1],
                                          const accel_bf16 logits[static 12 * 256], const float lse[static 12],
                                          const float scale[static 1], const int32_t targets[static 3 * 4]) {
  for (size_t r = 0; r < 12; r++) {
    const accel_bf16 *x = logits + r * 256;
    accel_bf16 *dx = dlogits + r * 256;
    const int32_t target = targets[r];
    const float factor = target >= 0 ? d_loss[0] * scale[0] : 0.0f, l = lse[r];
    const float top = factor;
    const size_t label = (size_t)target; /* none of the classes where it does not count; one rounding a position */
#pragma omp simd
    for (size_t v = 0; v < 256; v++) {
      const float slope = factor * accel_exp(accel_widen(x[v]) - l);
      dx[v] = accel_narrow((v == label ? slope - top : slope));
    }
  }
}

/* Copies weights as bfloat16, which is how most of the model reads them. */
static void narrow_weights(accel_bf16 *restrict copies, const float *restrict weights, size_t count) {
#pragma omp parallel for simd
  for (size_t i = 0; i < count; i++) copies[i] = accel_narrow(weights[i]);
}

/* ---- The model, function by function ---- */

/* attend, gpt2.c:51. */
static void attend_forward(const struct attend_weights_bf16 *weights_bf16, struct attend_saved *saved,
                           accel_bf16 add[static 12 * 8], const accel_bf16 x[static 12 * 8]) {
  matmul_bf16_3x4x8x24(saved->qkv, x, weights_bf16->c_attn_weight);
  add_bf16_3x4x24(saved->qkv, saved->qkv, weights_bf16->c_attn_bias);
  attention_bf16_3x2x4x4(saved->y, saved->y_lse, saved->qkv, saved->qkv + 8, saved->qkv + 16);
  matmul_bf16_3x4x8(add, saved->y, weights_bf16->c_proj_weight);
  add_bf16_3x4x8(add, add, weights_bf16->c_proj_bias);
}

/* mlp, gpt2.c:57. */
static void mlp_forward(const struct mlp_weights_bf16 *weights_bf16, struct mlp_saved *saved,
                        accel_bf16 add_2[static 12 * 8], const accel_bf16 x[static 12 * 8]) {
  matmul_bf16_3x4x8x32(saved->add, x, weights_bf16->c_fc_weight);
  add_gelu_tanh_bf16_3x4x32(saved->add, saved->h, saved->add, weights_bf16->c_fc_bias);
  matmul_bf16_3x4x32x8(add_2, saved->h, weights_bf16->c_proj_weight);
  add_bf16_3x4x8(add_2, add_2, weights_bf16->c_proj_bias);
}

/* block, gpt2.c:62. */
static void block_forward(const struct block_weights *weights, const struct block_weights_bf16 *weights_bf16,
                          struct block_saved *saved, struct block_forward_scratch *scratch, float add[static 12 * 8],
                          const float x[static 12 * 8], uint64_t stream) {
  layer_norm_bf16_3x4x8(saved->layer_norm, saved->layer_norm_mean, saved->layer_norm_rstd, x, weights->ln_1_weight,
                        weights->ln_1_bias);
  attend_forward(&weights_bf16->attn, &saved->attend, scratch->a, saved->layer_norm);
  dropout_bf16_3x4x8(scratch->a, scratch->a, stream);
  add_bf16_3x4x8_2(saved->x_2, x, scratch->a);
  layer_norm_bf16_3x4x8(saved->layer_norm_2, saved->layer_norm_2_mean, saved->layer_norm_2_rstd, saved->x_2,
                        weights->ln_2_weight, weights->ln_2_bias);
  mlp_forward(&weights_bf16->mlp, &saved->mlp, scratch->m, saved->layer_norm_2);
  dropout_bf16_3x4x8_2(scratch->m, scratch->m, stream);
  add_bf16_3x4x8_2(add, saved->x_2, scratch->m);
}

/* predict, gpt2.c:70. */
static void predict_forward(const struct model_weights *weights, const struct model_weights_bf16 *weights_bf16,
                            struct predict_saved *saved, struct predict_forward_scratch *scratch,
                            accel_bf16 matmul[static 12 * 256], const int32_t tokens[static 3 * 4], uint64_t stream) {
  embedding_256x8(scratch->x, weights->wte_weight, tokens);
  add_3x4x8(scratch->x, scratch->x, weights->wpe_weight);
  dropout_3x4x8(saved->x_of_block[0], scratch->x, stream);
  for (int i = 0; i < 2; i++)
    block_forward(&weights->h[i], &weights_bf16->h[i], &saved->block[i], &scratch->block_forward,
                  saved->x_of_block[i + 1], saved->x_of_block[i], accel_stream(stream, 0, i));
  layer_norm_bf16_3x4x8(saved->x_4, saved->x_4_mean, saved->x_4_rstd, saved->x_of_block[2], weights->ln_f_weight,
                        weights->ln_f_bias);
  matmul_nt_bf16_3x4x8x256(matmul, saved->x_4, weights_bf16->wte_weight);
}

/* model, gpt2.c:80. */
static void model_forward(const struct model_weights *weights, const struct model_weights_bf16 *weights_bf16,
                          struct model_saved *saved, struct model_forward_scratch *scratch,
                          float cross_entropy[static 1], const int32_t tokens[static 3 * 4],
                          const int32_t targets[static 3 * 4], uint64_t stream) {
  predict_forward(weights, weights_bf16, &saved->predict_saved, &scratch->predict_forward, saved->predict, tokens,
                  accel_stream(stream, 0, 0));
  cross_entropy_bf16_3x4x256(cross_entropy, saved->cross_entropy_lse, saved->cross_entropy_scale, saved->predict,
                             targets);
}

/* attend, gpt2.c:51. */
static void attend_evaluation_forward(const struct attend_weights_bf16 *weights_bf16,
                                      struct attend_evaluation_forward_scratch *scratch, accel_bf16 add[static 12 * 8],
                                      const accel_bf16 x[static 12 * 8]) {
  matmul_bf16_3x4x8x24(scratch->matmul, x, weights_bf16->c_attn_weight);
  add_bf16_3x4x24(scratch->matmul, scratch->matmul, weights_bf16->c_attn_bias);
  attention_bf16_3x2x4x4(scratch->y, scratch->y_lse, scratch->matmul, scratch->matmul + 8, scratch->matmul + 16);
  matmul_bf16_3x4x8(add, scratch->y, weights_bf16->c_proj_weight);
  add_bf16_3x4x8(add, add, weights_bf16->c_proj_bias);
}

/* mlp, gpt2.c:57. */
static void mlp_evaluation_forward(const struct mlp_weights_bf16 *weights_bf16,
                                   struct mlp_evaluation_forward_scratch *scratch, accel_bf16 add_2[static 12 * 8],
                                   const accel_bf16 x[static 12 * 8]) {
  matmul_bf16_3x4x8x32(scratch->matmul, x, weights_bf16->c_fc_weight);
  add_gelu_tanh_bf16_3x4x32_2(scratch->matmul, scratch->matmul, weights_bf16->c_fc_bias);
  matmul_bf16_3x4x32x8(add_2, scratch->matmul, weights_bf16->c_proj_weight);
  add_bf16_3x4x8(add_2, add_2, weights_bf16->c_proj_bias);
}

/* block, gpt2.c:62. */
static void block_evaluation_forward(const struct block_weights *weights, const struct block_weights_bf16 *weights_bf16,
                                     struct block_evaluation_forward_scratch *scratch, float add[static 12 * 8],
                                     const float x[static 12 * 8]) {
  layer_norm_bf16_3x4x8(scratch->layer_norm, scratch->layer_norm_mean, scratch->layer_norm_rstd, x,
                        weights->ln_1_weight, weights->ln_1_bias);
  attend_evaluation_forward(&weights_bf16->attn, &scratch->attend_evaluation_forward, scratch->a, scratch->layer_norm);
  add_bf16_3x4x8_2(add, x, scratch->a);
  layer_norm_bf16_3x4x8(scratch->layer_norm_2, scratch->layer_norm_2_mean, scratch->layer_norm_2_rstd, add,
                        weights->ln_2_weight, weights->ln_2_bias);
  mlp_evaluation_forward(&weights_bf16->mlp, &scratch->mlp_evaluation_forward, scratch->m, scratch->layer_norm_2);
  add_bf16_3x4x8_2(add, add, scratch->m);
}

/* predict, gpt2.c:70. */
static void predict_evaluation_forward(const struct model_weights *weights,
                                       const struct model_weights_bf16 *weights_bf16,
                                       struct predict_evaluation_forward_scratch *scratch,
                                       accel_bf16 matmul[static 12 * 256], const int32_t tokens[static 3 * 4]) {
  embedding_256x8(scratch->x, weights->wte_weight, tokens);
  add_3x4x8(scratch->x_of_block_evaluation[0], scratch->x, weights->wpe_weight);
  for (int i = 0; i < 2; i++)
    block_evaluation_forward(&weights->h[i], &weights_bf16->h[i], &scratch->block_evaluation_forward,
                             scratch->x_of_block_evaluation[(i + 1) % 2], scratch->x_of_block_evaluation[i % 2]);
  layer_norm_bf16_3x4x8(scratch->x_4, scratch->x_4_mean, scratch->x_4_rstd, scratch->x_of_block_evaluation[0],
                        weights->ln_f_weight, weights->ln_f_bias);
  matmul_nt_bf16_3x4x8x256(matmul, scratch->x_4, weights_bf16->wte_weight);
}

/* model, gpt2.c:80. */
static void model_evaluation_forward(const struct model_weights *weights, const struct model_weights_bf16 *weights_bf16,
                                     struct model_evaluation_forward_scratch *scratch, float cross_entropy[static 1],
                                     const int32_t tokens[static 3 * 4], const int32_t targets[static 3 * 4]) {
  predict_evaluation_forward(weights, weights_bf16, &scratch->predict_evaluation_forward, scratch->predict, tokens);
  cross_entropy_bf16_3x4x256(cross_entropy, scratch->cross_entropy_lse, scratch->cross_entropy_scale, scratch->predict,
                             targets);
}

/* Gradient of attend, gpt2.c:51. */
static void attend_backward(const struct attend_weights_bf16 *weights_bf16, struct attend_weights *gradients,
                            struct attend_saved *saved, struct attend_backward_scratch *scratch,
                            accel_bf16 d_x[static 12 * 8], const accel_bf16 d_add[static 12 * 8],
                            const accel_bf16 x[static 12 * 8]) {
  sum_bf16_3x4x8(gradients->c_proj_bias, d_add);
  matmul_nt_bf16_3x4x8(scratch->d_y, d_add, weights_bf16->c_proj_weight);
  matmul_tn_bf16_8x12x8(gradients->c_proj_weight, saved->y, d_add);
  attention_backward_bf16_3x2x4x4(scratch->d_qkv, scratch->d_qkv + 8, scratch->d_qkv + 16, scratch->d_y, saved->qkv,
                                  saved->qkv + 8, saved->qkv + 16, saved->y, saved->y_lse);
  sum_bf16_3x4x24(gradients->c_attn_bias, scratch->d_qkv);
  matmul_nt_bf16_3x4x24x8(d_x, scratch->d_qkv, weights_bf16->c_attn_weight);
  matmul_tn_bf16_8x12x24(gradients->c_attn_weight, x, scratch->d_qkv);
}

/* Gradient of mlp, gpt2.c:57. */
static void mlp_backward(const struct mlp_weights_bf16 *weights_bf16, struct mlp_weights *gradients,
                         struct mlp_saved *saved, struct mlp_backward_scratch *scratch, accel_bf16 d_x[static 12 * 8],
                         const accel_bf16 d_add_2[static 12 * 8], const accel_bf16 x[static 12 * 8]) {
  sum_bf16_3x4x8(gradients->c_proj_bias, d_add_2);
  matmul_nt_bf16_3x4x8x32(scratch->d_h, d_add_2, weights_bf16->c_proj_weight);
  matmul_tn_bf16_32x12x8(gradients->c_proj_weight, saved->h, d_add_2);
  gelu_tanh_backward_bf16_3x4x32(scratch->d_h, scratch->d_h, saved->add);
  sum_bf16_3x4x32(gradients->c_fc_bias, scratch->d_h);
  matmul_nt_bf16_3x4x32x8(d_x, scratch->d_h, weights_bf16->c_fc_weight);
  matmul_tn_bf16_8x12x32(gradients->c_fc_weight, x, scratch->d_h);
}

/* Gradient of block, gpt2.c:62. */
static void block_backward(const struct block_weights *weights, const struct block_weights_bf16 *weights_bf16,
                           struct block_weights *gradients, struct block_saved *saved,
                           struct block_backward_scratch *scratch, float d_x[static 12 * 8],
                           const float d_add[static 12 * 8], const float x[static 12 * 8], uint64_t stream) {
  cast_bfloat16_bf16_3x4x8(scratch->d_dropout_2, d_add);
  dropout_bf16_3x4x8_2(scratch->d_dropout_2, scratch->d_dropout_2, stream);
  mlp_backward(&weights_bf16->mlp, &gradients->mlp, &saved->mlp, &scratch->mlp_backward, scratch->d_layer_norm_2,
               scratch->d_dropout_2, saved->layer_norm_2);
  layer_norm_backward_bf16_3x4x8(d_x, gradients->ln_2_weight, gradients->ln_2_bias, scratch->d_layer_norm_2, saved->x_2,
                                 weights->ln_2_weight, saved->layer_norm_2_mean, saved->layer_norm_2_rstd);
  add_cast_bfloat16_bf16_3x4x8(d_x, scratch->d_dropout, d_add, d_x);
  dropout_bf16_3x4x8(scratch->d_dropout, scratch->d_dropout, stream);
  attend_backward(&weights_bf16->attn, &gradients->attn, &saved->attend, &scratch->attend_backward,
                  scratch->d_layer_norm, scratch->d_dropout, saved->layer_norm);
  layer_norm_backward_bf16_3x4x8(scratch->layer_norm_backward_2, gradients->ln_1_weight, gradients->ln_1_bias,
                                 scratch->d_layer_norm, x, weights->ln_1_weight, saved->layer_norm_mean,
                                 saved->layer_norm_rstd);
  add_3x4x8_2(d_x, d_x, scratch->layer_norm_backward_2);
}

/* Gradient of predict, gpt2.c:70. */
static void predict_backward(const struct model_weights *weights, const struct model_weights_bf16 *weights_bf16,
                             struct model_weights *gradients, struct predict_saved *saved,
                             struct predict_backward_scratch *scratch, const accel_bf16 d_matmul[static 12 * 256],
                             const int32_t tokens[static 3 * 4], uint64_t stream) {
  matmul_bf16_3x4x256x8(scratch->d_x_4, d_matmul, weights_bf16->wte_weight);
  matmul_tn_bf16_8x12x256(gradients->wte_weight, saved->x_4, d_matmul);
  layer_norm_backward_bf16_3x4x8(scratch->d_add_of_block_backward[0], gradients->ln_f_weight, gradients->ln_f_bias,
                                 scratch->d_x_4, saved->x_of_block[2], weights->ln_f_weight, saved->x_4_mean,
                                 saved->x_4_rstd);
  for (int i = 1; i >= 0; i--)
    block_backward(&weights->h[i], &weights_bf16->h[i], &gradients->h[i], &saved->block[i], &scratch->block_backward,
                   scratch->d_add_of_block_backward[i % 2], scratch->d_add_of_block_backward[(i + 1) % 2],
                   saved->x_of_block[i], accel_stream(stream, 0, i));
  dropout_3x4x8(scratch->d_add, scratch->d_add_of_block_backward[0], stream);
  sum_3x4x8(gradients->wpe_weight, scratch->d_add);
  embedding_backward_add_3x4x8(gradients->wte_weight, scratch->d_add, tokens);
}

/* Gradient of model, gpt2.c:80. */
static void model_backward(const struct model_weights *weights, const struct model_weights_bf16 *weights_bf16,
                           struct model_weights *gradients, struct model_saved *saved,
                           struct model_backward_scratch *scratch, const int32_t targets[static 3 * 4],
                           const int32_t tokens[static 3 * 4], uint64_t stream) {
  constant_1(scratch->d_cross_entropy);
  cross_entropy_backward_bf16_1(saved->predict, scratch->d_cross_entropy, saved->predict, saved->cross_entropy_lse,
                                saved->cross_entropy_scale, targets);
  predict_backward(weights, weights_bf16, gradients, &saved->predict_saved, &scratch->predict_backward, saved->predict,
                   tokens, accel_stream(stream, 0, 0));
}

/* ---- Training ---- */

/* The batch at hand gives its loss, in arena->result. */
static void forward(uint64_t stream) {
  model_forward(&arena->weights, &arena->weights_bf16, &arena->saved, &arena->scratch.forward, arena->result,
                arena->tokens, arena->targets, stream);
}

/* The gradients of that loss. */
static void backward(uint64_t stream) {
  model_backward(&arena->weights, &arena->weights_bf16, &arena->gradients, &arena->saved, &arena->scratch.backward,
                 arena->targets, arena->tokens, stream);
}

/* The same rate for all steps. */
static double learning_rate(void) {
  return 0.001;
}

/* The norm of the whole gradient. */
static double gradient_norm(void) {
  static double sums[1];
  double total = accel_sum_of_squares(arena->all_gradients, 3968, 1.0f, sums);
  return sqrt(total);
}

/* What clips a gradient of this norm, in the arithmetic of PyTorch's clip_grad_norm_. */
static float clip_factor(double norm) {
  return (float)fmin(1.0 / (norm + 1e-6), 1.0);
}

/* AdamW (Loshchilov, Hutter, arXiv:1711.05101) in PyTorch's arithmetic, in one sweep with the gradient's clipping. */
static void update(int64_t at, double lr, float factor) {
  const double correction_1 = 1.0 - pow(0.9, (double)(at + 1));
  const double correction_2 = 1.0 - pow(0.95, (double)(at + 1));
  const float rate = (float)(lr / correction_1), root = (float)(1.0 / sqrt(correction_2));
  const float keep = (float)(1.0 - lr * 0.1);
  const float *restrict gradients = arena->all_gradients;
  accel_bf16 *restrict copies = arena->all_weights_bf16;
  float *restrict weights = arena->all_weights;
  float *restrict moment_1 = arena->moment_1;
  float *restrict moment_2 = arena->moment_2;
#pragma omp simd
  for (size_t i = 0; i < 3968; i++) {
    const float g = gradients[i] * factor;
    const float m = 0.9f * moment_1[i] + 0.1f * g;
    const float v = 0.95f * moment_2[i] + 0.05f * (g * g);
    moment_1[i] = m;
    moment_2[i] = v;
    const float w = weights[i] * keep - rate * m / (sqrtf(v) * root + 1e-08f);
    weights[i] = w;
    copies[i] = accel_narrow(w);
  }
}

/* What the newest step left, for the log. */
static struct accel_report report;

static void load_batch(struct accel_run *run, enum accel_split split, int64_t position) {
  accel_load_sequences(run, split, position, 3, arena->tokens, arena->targets);
}

/* One optimizer step: 3 samples. */
static void step(struct accel_run *run, int64_t at) {
  load_batch(run, ACCEL_TRAIN, at * 3);
  forward(accel_stream(11u, (uint64_t)at, 0));
  report.loss = arena->result[0];
  backward(accel_stream(11u, (uint64_t)at, 0));
  report.lr = learning_rate();
  report.grad_norm = gradient_norm();
  accel_require_finite_loss(run, at, report.loss);
  accel_require_finite_norm(run, at, report.grad_norm);
  update(at, report.lr, clip_factor(report.grad_norm));
}

/* The batch at hand gives its loss, in arena->result, as the model is when it does not learn. */
static void forward_evaluation(void) {
  model_evaluation_forward(&arena->weights, &arena->weights_bf16, &arena->scratch.evaluation, arena->result,
                           arena->tokens, arena->targets);
}

/* The mean loss over 20 batches of the evaluation split, the same ones each time. */
static double evaluate(struct accel_run *run) {
  const int64_t batches = accel_eval_begin(run);
  for (int64_t i = 0; i < batches; i++) {
    load_batch(run, ACCEL_EVAL, i * 3);
    forward_evaluation();
    accel_eval_add(run, i, arena->result[0], 3);
  }
  return accel_eval_loss(run);
}

/* Makes oneDNN's primitives ready; says where the processor has no instructions for 16 bits. */
static void open_primitives(void) {
  bool native = true;
  native &= accel_open_gemm(&matmul_bf16_3x4x8x24_gemm);
  native &= accel_open_gemm(&matmul_bf16_3x4x8_gemm);
  native &= accel_open_gemm(&matmul_bf16_3x4x8x32_gemm);
  native &= accel_open_gemm(&matmul_bf16_3x4x32x8_gemm);
  native &= accel_open_gemm(&matmul_nt_bf16_3x4x8x256_gemm);
  native &= accel_open_gemm(&matmul_nt_bf16_3x4x8_gemm);
  native &= accel_open_gemm(&matmul_tn_bf16_8x12x8_gemm);
  native &= accel_open_gemm(&matmul_nt_bf16_3x4x24x8_gemm);
  native &= accel_open_gemm(&matmul_tn_bf16_8x12x24_gemm);
  native &= accel_open_gemm(&matmul_nt_bf16_3x4x8x32_gemm);
  native &= accel_open_gemm(&matmul_tn_bf16_32x12x8_gemm);
  native &= accel_open_gemm(&matmul_nt_bf16_3x4x32x8_gemm);
  native &= accel_open_gemm(&matmul_tn_bf16_8x12x32_gemm);
  native &= accel_open_gemm(&matmul_bf16_3x4x256x8_gemm);
  native &= accel_open_gemm(&matmul_tn_bf16_8x12x256_gemm);
  if (!native) accel_note("this processor does not multiply bfloat16: matmuls run in float32");
}

/* The parameters by their published names: where they are, how they start, their shape. */
#define PARAMETER(name, member, init, a, b, rank, ...)                                                                 \
  {name, offsetof(struct model_weights, member), rank, {__VA_ARGS__}, ACCEL_##init, a, b, ACCEL_FLOAT32}
static const struct accel_tensor tensors[] = {
    PARAMETER("wpe.weight", wpe_weight, NORMAL, 0.0, 0.02, 2, 4, 8),
    PARAMETER("wte.weight", wte_weight, NORMAL, 0.0, 0.02, 2, 256, 8),
    PARAMETER("ln_f.weight", ln_f_weight, ONES, 0.0, 0.0, 1, 8),
    PARAMETER("ln_f.bias", ln_f_bias, ZEROS, 0.0, 0.0, 1, 8),
    PARAMETER("h.%d.ln_1.weight", h[0].ln_1_weight, ONES, 0.0, 0.0, 1, 8),
    PARAMETER("h.%d.ln_1.bias", h[0].ln_1_bias, ZEROS, 0.0, 0.0, 1, 8),
    PARAMETER("h.%d.ln_2.weight", h[0].ln_2_weight, ONES, 0.0, 0.0, 1, 8),
    PARAMETER("h.%d.ln_2.bias", h[0].ln_2_bias, ZEROS, 0.0, 0.0, 1, 8),
    PARAMETER("h.%d.attn.c_attn.weight", h[0].attn.c_attn_weight, NORMAL, 0.0, 0.02, 2, 8, 24),
    PARAMETER("h.%d.attn.c_attn.bias", h[0].attn.c_attn_bias, ZEROS, 0.0, 0.0, 1, 24),
    PARAMETER("h.%d.attn.c_proj.weight", h[0].attn.c_proj_weight, NORMAL, 0.0, 0.01, 2, 8, 8),
    PARAMETER("h.%d.attn.c_proj.bias", h[0].attn.c_proj_bias, ZEROS, 0.0, 0.0, 1, 8),
    PARAMETER("h.%d.mlp.c_fc.weight", h[0].mlp.c_fc_weight, NORMAL, 0.0, 0.02, 2, 8, 32),
    PARAMETER("h.%d.mlp.c_fc.bias", h[0].mlp.c_fc_bias, ZEROS, 0.0, 0.0, 1, 32),
    PARAMETER("h.%d.mlp.c_proj.weight", h[0].mlp.c_proj_weight, NORMAL, 0.0, 0.01, 2, 32, 8),
    PARAMETER("h.%d.mlp.c_proj.bias", h[0].mlp.c_proj_bias, ZEROS, 0.0, 0.0, 1, 8),
};

/* Rows of which each of several layers has the same, under its number: the first row and how many, the first number and
 * how many layers, the bytes from one layer to the next, and whether they alternate with those of the next row. */
static const struct accel_layers layers_of_tensors[] = {
    /* h.%d */
    {4, 12, 0, 2, sizeof(struct block_weights), false},
};

/* What outlives a step: its file in a checkpoint and its name there, where it is. */
static const struct accel_state states[] = {
    {"model", "", ACCEL_FLOAT32, offsetof(struct arena, weights), 3968, NULL, 0},
    {"optimizer", "exp_avg", ACCEL_FLOAT32, offsetof(struct arena, moment_1), 3968, NULL, 0},
    {"optimizer", "exp_avg_sq", ACCEL_FLOAT32, offsetof(struct arena, moment_2), 3968, NULL, 0},
};

/* The keys of the job that differ from the defaults of accel-gen 0.2.0, a digest of the model's C, and whether the key
 * may change when the run is continued. The digests below are of all keys. */
static const struct accel_key keys[] = {
    {"model.source", "gpt2.c", true},
    {"model.config.n_layer", "2", false},
    {"model.config.n_head", "2", false},
    {"model.config.n_embd", "8", false},
    {"model.config.vocab_size", "256", false},
    {"model.config.block_size", "4", false},
    {"model.config.dropout", "0.1", false},
    {"data.train.path", "corpus.txt", true},
    {"data.train.format", "bytes", true},
    {"data.batch_size", "3", true},
    {"precision.mixed_precision", "bf16", false},
    {"optimizer.betas", "[0.9, 0.95]", false},
    {"optimizer.weight_decay", "0.1", false},
    {"optimizer.clip_grad_norm", "1.0", false},
    {"training.steps", "3", true},
    {"training.seed", "11", false},
    {"training.eval_interval", "2", true},
    {"checkpoint.project_dir", "run", true},
    {"the model's C", "b1dd41ccbce48dc2", true},
};

static const struct accel_program program = {
    .name = "gpt2",
    .summary = "2 layers, 0.00 M parameters, bfloat16",
    .job_digest = "8f602793bce1088fc50be13e726a93faf9c5285e443a9fba48b80355f1aa6c2a",
    .fixed_digest = "70606c94abc0d160",
    .generator = "accel-gen 0.2.0",
    .plan = "model     gpt2.c: 2 layers, 3,840 parameters (1 tied)\n"
            "step      3 x 4 = 12 tokens, 302 kFLOP (matmuls 87 %)\n"
            "memory    0.1 MiB: weights 0.0, gradients 0.0, optimizer 0.0, activations 0.0, scratch 0.0\n"
            "precision bfloat16 by autocast, weights and their gradients in float32\n"
            "traffic   none (1 rank)\n",
    .job_file = "job.yaml",
    .steps = 3,
    .seed = 11,
    .data_seed = 11,
    .batch_size = 3,
    .micro_batches = 1,
    .tensors = tensors,
    .n_tensors = 16,
    .layers = layers_of_tensors,
    .n_layers = 1,
    .states = states,
    .n_states = 3,
    .keys = keys,
    .n_keys = sizeof keys / sizeof *keys,
    .matmul_flops = 263424.0,
    .weights_bytes = sizeof(struct model_weights),
    .arena_bytes = sizeof(struct arena),
    .processor = ACCEL_PROCESSOR,
    .source = {{"corpus.txt", ACCEL_BYTES}},
    .eval_fraction = 0.1,
    .shuffle = true,
    .prefetch = 2,
    .sequence_length = 4,
    .vocabulary = 256,
    .log_every = 10,
    .eval_every = 2,
    .eval_iters = 20,
    .checkpoint.automatic_naming = true,
    .checkpoint.max_shard_bytes = 10000000000,
    .checkpoint.resume = "never",
    .checkpoint.config = "{\"architectures\": [\"GPT2LMHeadModel\"],\n"
                         "\"model_type\": \"gpt2\",\n"
                         "\"n_positions\": 4,\n"
                         "\"n_inner\": 32,\n"
                         "\"activation_function\": \"gelu_new\",\n"
                         "\"layer_norm_epsilon\": 1e-5,\n"
                         "\"scale_attn_weights\": true,\n"
                         "\"scale_attn_by_inverse_layer_idx\": false,\n"
                         "\"add_cross_attention\": false,\n"
                         "\"tie_word_embeddings\": true,\n"
                         "\"n_layer\": 2,\n"
                         "\"n_head\": 2,\n"
                         "\"n_embd\": 8,\n"
                         "\"vocab_size\": 256,\n"
                         "\"bos_token_id\": null,\n"
                         "\"eos_token_id\": null,\n"
                         "\"pad_token_id\": null}",
    .checkpoint.saves_on_signal = true,
    .project_dir = "run",
};

/* A function of its own, so that the start looks at the processor before the first instruction that it may lack. */
static __attribute__((noinline)) int train(struct accel_run *run) {
  arena = accel_arena(run);
  open_primitives();
  accel_fill_weights(run, &arena->weights);
  narrow_weights(arena->all_weights_bf16, arena->all_weights, 3968);
  int64_t at = accel_first_step(run);
  while (at < accel_steps(run)) {
    const int64_t until = accel_next_event(run, at);
    for (; at < until; at++) step(run, at);
    accel_check(accel_onednn_status(), "oneDNN could not multiply matrices");
    if (accel_eval_is_due(run, at)) accel_report_eval(run, at, evaluate(run));
    accel_handle_events(run, at, report);
  }
  return accel_finish(run);
}

int main(int argc, char **argv) {
  return train(accel_start(&program, argc, argv));
}
