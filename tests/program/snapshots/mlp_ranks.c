/* mlp_table: a training program for one job, written by accel-gen 0.2.0.
 *
 * job       job.yaml, fd6dd56f5d0c2e3a338fc11a460656535e6463bf43468c747c216b3d15309192
 * model     mlp_table.c: 122 parameters
 * step      12 rows, 3.86 kFLOP (matmuls 87 %)
 * memory    0.0 MiB: weights 0.0, gradients 0.0, optimizer 0.0, activations 0.0, scratch 0.0
 * process   outside the arena: 0.8 KiB a rank for exchanges within a machine; libraries and MPI, some 30 MiB
 * traffic   1.5 KiB a step from each of 2 ranks, in 6 collectives
 *
 * Build: cc -std=c17 -O3 -march=native -fopenmp trainer.c -o trainer $(pkg-config --cflags --libs accel-runtime-mpi) */
#include <accel/collectives.h>
#include <accel/cpu/kernels.h>
#include <accel/cpu/matmul.h>
#include <accel/trainer.h>
#include <assert.h>
#include <math.h>
#include <oneapi/dnnl/dnnl.h>
#include <stdalign.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* The tensors of the data: their column, their type, the numbers of a sample; of integers, what they must be below, one
 * more number that is allowed, or 0, and whether the loss leaves that out. */
static const struct accel_input inputs[] = {
    {"features", NULL, ACCEL_FLOAT32, 5, 0, 0, false},
    {"labels", NULL, ACCEL_INT32, 1, 3, -100, true},
};

/* ---- The arena's map ----
 *
 * Arrays are flat and row-major: [rows * columns]. A comment gives the shape where that does not. */

struct hidden_weights {
  alignas(64) float weight[7 * 5];
  alignas(64) float bias[7];
};
static_assert(sizeof(struct hidden_weights) == 256, "as planned");

struct hidden_2_weights {
  alignas(64) float weight[7 * 7];
  alignas(64) float bias[7];
};
static_assert(sizeof(struct hidden_2_weights) == 320, "as planned");

struct model_weights {
  alignas(64) float output_weight[3 * 7];
  alignas(64) float output_bias[3];
  struct hidden_weights hidden_0;
  struct hidden_2_weights hidden_1;
};
static_assert(sizeof(struct model_weights) == 768, "as planned");

/* What hidden_forward keeps for its backward. */
struct hidden_saved {
  alignas(64) float add[3 * 7];
};
static_assert(sizeof(struct hidden_saved) == 128, "as planned");

/* What hidden_2_forward keeps for its backward. */
struct hidden_2_saved {
  alignas(64) float add[3 * 7];
};
static_assert(sizeof(struct hidden_2_saved) == 128, "as planned");

/* What predict_forward keeps for its backward. */
struct predict_saved {
  alignas(64) float x[3 * 7];
  alignas(64) float x_2[3 * 7];
  struct hidden_saved hidden;
  struct hidden_2_saved hidden_2;
};
static_assert(sizeof(struct predict_saved) == 512, "as planned");

/* What model_forward keeps for its backward. */
struct model_saved {
  alignas(64) float predict[3 * 3];
  alignas(64) float cross_entropy_lse[3];
  alignas(64) float cross_entropy_scale[1];
  struct predict_saved predict_saved;
};
static_assert(sizeof(struct model_saved) == 704, "as planned");

/* What predict_backward needs while it runs. */
struct predict_backward_scratch {
  alignas(64) float d_x_2[3 * 7];
  alignas(64) float d_x[3 * 7];
};
static_assert(sizeof(struct predict_backward_scratch) == 256, "as planned");

/* What model_backward needs while it runs; members of a union are never in use together. */
struct model_backward_scratch {
  union {
    alignas(64) float d_cross_entropy[1];
    struct predict_backward_scratch predict_backward;
  };
};
static_assert(sizeof(struct model_backward_scratch) == 256, "as planned");

struct arena {
  union {
    struct model_weights weights;
    float all_weights[192];
  };
  union {
    struct model_weights gradients;
    float whole_gradients[192];
  };
  alignas(64) float all_gradients[112]; /* this rank's part of those of all ranks */
  float moment_1[112];
  alignas(64) float features[3 * 5];
  alignas(64) int32_t labels[3];
  alignas(64) float result[1]; /* the loss */
  struct model_saved saved;
  union {
    struct model_backward_scratch backward;
  } scratch;
};
static_assert(sizeof(struct arena) == 3584, "as planned");

static struct arena *arena;

/* This process among the 2 that divide the update, and 1 on the last of them. */
static size_t shard, is_last;

/* ---- Kernels ---- */

/* y = a b: [3][5] x [5][7]. */
static void matmul_nt_3x5x7(float y[static 3 * 7], const float a[static 3 * 5], const float b[static 35]) {
  accel_gemm('N', 'T', 3, 7, 5, a, 5, b, 5, 0.0f, y, 7);
}

static void add_relu_3x7(float y0[static 3 * 7], float y1[static 3 * 7], const float x0[static 3 * 7],
                         const float x1[static 7]) {
  for (size_t i = 0; i < 3; i++)
#pragma omp simd
    for (size_t j = 0; j < 7; j++) {
      const float t0 = x0[i * 7 + j] + x1[j];
      y1[i * 7 + j] = t0 < 0.0f ? 0.0f : t0;
      y0[i * 7 + j] = t0;
    }
}

/* y = a b: [3][7] x [7][7]. */
static void matmul_nt_3x7(float y[static 3 * 7], const float a[static 3 * 7], const float b[static 49]) {
  accel_gemm('N', 'T', 3, 7, 7, a, 7, b, 7, 0.0f, y, 7);
}

/* y = a b: [3][7] x [7][3]. */
static void matmul_nt_3x7x3(float y[static 3 * 3], const float a[static 3 * 7], const float b[static 21]) {
  accel_gemm('N', 'T', 3, 3, 7, a, 7, b, 7, 0.0f, y, 3);
}

static void add_3x3(float y[static 3 * 3], const float x0[static 3 * 3], const float x1[static 3]) {
  for (size_t i = 0; i < 3; i++)
#pragma omp simd
    for (size_t j = 0; j < 3; j++) {
      y[i * 3 + j] = x0[i * 3 + j] + x1[j];
    }
}

/* loss = the mean of lse[r] - logits[r][targets[r]] over the targets that are not -100; lse = ln sum e^logits. */
static void cross_entropy_3x3(float loss[static 1], float lse[static 3], float scale[static 1],
                              const float logits[static 3 * 3], const int32_t targets[static 3]) {
  double total = 0.0;
  int count = 0;
  for (size_t r = 0; r < 3; r++) {
    const float *x = logits + r * 3;
    const float highest = accel_max(x, 3);
    float sum = 0.0f;
#pragma omp simd reduction(+ : sum)
    for (size_t v = 0; v < 3; v++) sum += accel_exp(x[v] - highest);
    const float rest = logf(sum);
    lse[r] = highest + rest;
    const int32_t target = targets[r];
    if (target >= 0) {
      total += (highest - x[target]) + rest;
      count++;
    }
  }
  scale[0] = 1.0f / (float)count;
  loss[0] = (float)(total / count);
}

static void relu_backward_3x7(float y[static 3 * 7], const float x0[static 3 * 7], const float x1[static 3 * 7]) {
#pragma omp simd
  for (size_t i = 0; i < 21; i++) {
    y[i] = x1[i] > 0.0f ? x0[i] : 0.0f;
  }
}

/* y += the sum of x over axes 0. */
static void sum_add_3x7(float y[static 7], const float x[static 3 * 7]) {
  for (size_t first = 0; first < 7; first += 7) {
    enum { WIDTH = 7 };
    float sums[7] = {0.0f};
    for (size_t r = 0; r < 3; r++) {
      const float *xr = x + r * 7 + first;
#pragma omp simd
      for (size_t c = 0; c < WIDTH; c++) sums[c] += xr[c];
    }
    for (size_t c = 0; c < WIDTH; c++) y[first + c] += sums[c];
  }
}

/* y^T += b^T a^T: [7][3] x [3][5]. */
static void matmul_tn_add_5x3x7(float y[static 35], const float a[static 15], const float b[static 3 * 7]) {
  accel_gemm('T', 'N', 7, 5, 3, b, 7, a, 5, 1.0f, y, 5);
}

/* y = a b: [3][7] x [7][7]. */
static void matmul_3x7(float y[static 3 * 7], const float a[static 3 * 7], const float b[static 7 * 7]) {
  accel_gemm('N', 'N', 3, 7, 7, a, 7, b, 7, 0.0f, y, 7);
}

/* y^T += b^T a^T: [7][3] x [3][7]. */
static void matmul_tn_add_7x3x7(float y[static 49], const float a[static 21], const float b[static 3 * 7]) {
  accel_gemm('T', 'N', 7, 7, 3, b, 7, a, 7, 1.0f, y, 7);
}

/* y += the sum of x over axes 0. */
static void sum_add_3x3(float y[static 3], const float x[static 3 * 3]) {
  for (size_t first = 0; first < 3; first += 3) {
    enum { WIDTH = 3 };
    float sums[3] = {0.0f};
    for (size_t r = 0; r < 3; r++) {
      const float *xr = x + r * 3 + first;
#pragma omp simd
      for (size_t c = 0; c < WIDTH; c++) sums[c] += xr[c];
    }
    for (size_t c = 0; c < WIDTH; c++) y[first + c] += sums[c];
  }
}

/* y = a b: [3][3] x [3][7]. */
static void matmul_3x3x7(float y[static 3 * 7], const float a[static 3 * 3], const float b[static 3 * 7]) {
  accel_gemm('N', 'N', 3, 7, 3, a, 3, b, 7, 0.0f, y, 7);
}

/* y^T += b^T a^T: [3][3] x [3][7]. */
static void matmul_tn_add_7x3(float y[static 21], const float a[static 21], const float b[static 3 * 3]) {
  accel_gemm('T', 'N', 3, 7, 3, b, 3, a, 7, 1.0f, y, 7);
}

static void constant_1(float y[static 1]) {
  y[0] = 0.25f;
}

/* dlogits = d_loss scale (e^(logits - lse) - 1 at the target); rows whose target is -100 are 0. */
static void cross_entropy_backward_1(float dlogits[static 3 * 3], const float d_loss[static 1],
                                     const float logits[static 3 * 3], const float lse[static 3],
                                     const float scale[static 1], const int32_t targets[static 3]) {
  for (size_t r = 0; r < 3; r++) {
    const float *x = logits + r * 3;
    float *dx = dlogits + r * 3;
    const int32_t target = targets[r];
    const float factor = target >= 0 ? d_loss[0] * scale[0] : 0.0f, l = lse[r];
#pragma omp simd
    for (size_t v = 0; v < 3; v++) dx[v] = factor * accel_exp(x[v] - l);
    if (target >= 0) dx[target] -= factor;
  }
}

/* ---- What ranks do together ---- */

/* Weights in the order in which the backward completes their gradients, named by the first of each row: its element and
 * that of its gradient, how many of the row a rank updates, how many more the last one does, and where these begin
 * among a rank's own gradients and moments. */
static const struct range {
  size_t first, gradients, shard_size, rest, own;
} ranges[] = {
    /* output.weight */
    {0, 0, 16, 16, 0},
    /* hidden.0.weight */
    {48, 48, 64, 16, 32},
};

/* The gradients of the ranges from `first` up to `end` are complete: they begin to be added up, each rank's part on
 * that rank, while the backward continues. */
static void send_gradients(size_t first, size_t end) {
  for (size_t i = first; i < end; i++)
    accel_start_reduce_scatter(ACCEL_DP_SHARD, arena->whole_gradients + ranges[i].gradients,
                               arena->all_gradients + ranges[i].own, ranges[i].shard_size,
                               ranges[i].shard_size + ranges[i].rest);
  accel_advance_collectives();
}

/* ---- The model, function by function ---- */

/* hidden, mlp_table.c:13. */
static void hidden_forward(const struct hidden_weights *weights, struct hidden_saved *saved, float relu[static 3 * 7],
                           const float x[static 3 * 5]) {
  matmul_nt_3x5x7(saved->add, x, weights->weight);
  add_relu_3x7(saved->add, relu, saved->add, weights->bias);
}

/* hidden, mlp_table.c:13. */
static void hidden_2_forward(const struct hidden_2_weights *weights, struct hidden_2_saved *saved,
                             float relu[static 3 * 7], const float x[static 3 * 7]) {
  matmul_nt_3x7(saved->add, x, weights->weight);
  add_relu_3x7(saved->add, relu, saved->add, weights->bias);
}

/* predict, mlp_table.c:18. */
static void predict_forward(const struct model_weights *weights, struct predict_saved *saved, float add[static 3 * 3],
                            const float features[static 3 * 5]) {
  hidden_forward(&weights->hidden_0, &saved->hidden, saved->x, features);
  hidden_2_forward(&weights->hidden_1, &saved->hidden_2, saved->x_2, saved->x);
  matmul_nt_3x7x3(add, saved->x_2, weights->output_weight);
  add_3x3(add, add, weights->output_bias);
}

/* model, mlp_table.c:24. */
static void model_forward(const struct model_weights *weights, struct model_saved *saved, float cross_entropy[static 1],
                          const float features[static 3 * 5], const int32_t labels[static 3]) {
  predict_forward(weights, &saved->predict_saved, saved->predict, features);
  cross_entropy_3x3(cross_entropy, saved->cross_entropy_lse, saved->cross_entropy_scale, saved->predict, labels);
}

/* Gradient of hidden, mlp_table.c:13. */
static void hidden_backward(struct hidden_weights *gradients, struct hidden_saved *saved,
                            const float d_relu[static 3 * 7], const float x[static 3 * 5]) {
  relu_backward_3x7(saved->add, d_relu, saved->add);
  sum_add_3x7(gradients->bias, saved->add);
  matmul_tn_add_5x3x7(gradients->weight, x, saved->add);
}

/* Gradient of hidden, mlp_table.c:13, sent as it is completed. */
static void last_hidden_backward(struct hidden_weights *gradients, struct hidden_saved *saved,
                                 const float d_relu[static 3 * 7], const float x[static 3 * 5]) {
  relu_backward_3x7(saved->add, d_relu, saved->add);
  sum_add_3x7(gradients->bias, saved->add);
  matmul_tn_add_5x3x7(gradients->weight, x, saved->add);
  send_gradients(1, 2);
}

/* Gradient of hidden, mlp_table.c:13. */
static void hidden_2_backward(const struct hidden_2_weights *weights, struct hidden_2_weights *gradients,
                              struct hidden_2_saved *saved, float d_x[static 3 * 7], const float d_relu[static 3 * 7],
                              const float x[static 3 * 7]) {
  relu_backward_3x7(saved->add, d_relu, saved->add);
  sum_add_3x7(gradients->bias, saved->add);
  matmul_3x7(d_x, saved->add, weights->weight);
  matmul_tn_add_7x3x7(gradients->weight, x, saved->add);
}

/* Gradient of predict, mlp_table.c:18. */
static void predict_backward(const struct model_weights *weights, struct model_weights *gradients,
                             struct predict_saved *saved, struct predict_backward_scratch *scratch,
                             const float d_add[static 3 * 3], const float features[static 3 * 5]) {
  sum_add_3x3(gradients->output_bias, d_add);
  matmul_3x3x7(scratch->d_x_2, d_add, weights->output_weight);
  matmul_tn_add_7x3(gradients->output_weight, saved->x_2, d_add);
  hidden_2_backward(&weights->hidden_1, &gradients->hidden_1, &saved->hidden_2, scratch->d_x, scratch->d_x_2, saved->x);
  hidden_backward(&gradients->hidden_0, &saved->hidden, scratch->d_x, features);
}

/* Gradient of predict, mlp_table.c:18, sent as it is completed. */
static void last_predict_backward(const struct model_weights *weights, struct model_weights *gradients,
                                  struct predict_saved *saved, struct predict_backward_scratch *scratch,
                                  const float d_add[static 3 * 3], const float features[static 3 * 5]) {
  sum_add_3x3(gradients->output_bias, d_add);
  matmul_3x3x7(scratch->d_x_2, d_add, weights->output_weight);
  matmul_tn_add_7x3(gradients->output_weight, saved->x_2, d_add);
  send_gradients(0, 1);
  hidden_2_backward(&weights->hidden_1, &gradients->hidden_1, &saved->hidden_2, scratch->d_x, scratch->d_x_2, saved->x);
  last_hidden_backward(&gradients->hidden_0, &saved->hidden, scratch->d_x, features);
}

/* Gradient of model, mlp_table.c:24. */
static void model_backward(const struct model_weights *weights, struct model_weights *gradients,
                           struct model_saved *saved, struct model_backward_scratch *scratch,
                           const int32_t labels[static 3], const float features[static 3 * 5]) {
  constant_1(scratch->d_cross_entropy);
  cross_entropy_backward_1(saved->predict, scratch->d_cross_entropy, saved->predict, saved->cross_entropy_lse,
                           saved->cross_entropy_scale, labels);
  predict_backward(weights, gradients, &saved->predict_saved, &scratch->predict_backward, saved->predict, features);
}

/* Gradient of model, mlp_table.c:24, sent as it is completed. */
static void last_model_backward(const struct model_weights *weights, struct model_weights *gradients,
                                struct model_saved *saved, struct model_backward_scratch *scratch,
                                const int32_t labels[static 3], const float features[static 3 * 5]) {
  constant_1(scratch->d_cross_entropy);
  cross_entropy_backward_1(saved->predict, scratch->d_cross_entropy, saved->predict, saved->cross_entropy_lse,
                           saved->cross_entropy_scale, labels);
  last_predict_backward(weights, gradients, &saved->predict_saved, &scratch->predict_backward, saved->predict,
                        features);
}

/* ---- Training ---- */

/* The batch at hand gives its loss, in arena->result. */
static void forward(void) {
  model_forward(&arena->weights, &arena->saved, arena->result, arena->features, arena->labels);
}

/* The gradients of that loss, added to those of the micro-batches before. */
static void backward(void) {
  model_backward(&arena->weights, &arena->gradients, &arena->saved, &arena->scratch.backward, arena->labels,
                 arena->features);
}

/* The same, sent to the other ranks as they are completed. */
static void last_backward(void) {
  last_model_backward(&arena->weights, &arena->gradients, &arena->saved, &arena->scratch.backward, arena->labels,
                      arena->features);
}

/* The same rate for all steps. */
static double learning_rate(void) {
  return 0.001;
}

/* The norm of the whole gradient, of which each rank has a part. */
static double gradient_norm(void) {
  static double sums[1];
  double total = accel_sum_of_squares(arena->all_gradients, 112, 1.0f, sums);
  accel_all_reduce_doubles(ACCEL_DP_SHARD, &total, 1);
  return sqrt(total);
}

/* This rank's part of one flat range, shared out among the threads that all call this. */
static void update_range(const struct range *range, double lr) {
  const size_t own = range->first + shard * range->shard_size, count = range->shard_size + is_last * range->rest;
  const float rate = (float)lr;
  const float *restrict gradients = arena->all_gradients + range->own;
  float *restrict weights = arena->all_weights + own;
  float *restrict moment_1 = arena->moment_1 + range->own;
#pragma omp for simd nowait
  for (size_t i = 0; i < count; i++) {
    const float g = gradients[i];
    const float m = 0.9f * moment_1[i] + g;
    moment_1[i] = m;
    const float w = weights[i] - rate * m;
    weights[i] = w;
  }
}

/* Stochastic gradient descent with momentum in PyTorch's arithmetic, in one sweep with the clipping of the
 * gradient. */
static void update(int64_t at, double lr) {
  (void)at;
#pragma omp parallel
  for (size_t i = 0; i < 2; i++) update_range(&ranges[i], lr);
}

/* What the newest step left, for the log. */
static struct accel_report report;

static void load_batch(struct accel_run *run, enum accel_split split, int64_t position) {
  accel_load_input(run, split, position, 3, &inputs[0], arena->features);
  accel_load_input(run, split, position, 3, &inputs[1], arena->labels);
}

/* What each rank has updated goes to all others. */
static void gather_weights(void) {
  for (size_t i = 0; i < 2; i++)
    accel_start_all_gather(ACCEL_DP_SHARD, arena->all_weights + ranges[i].first, ranges[i].shard_size,
                           ranges[i].shard_size + ranges[i].rest);
  accel_wait_gathers();
}

/* One micro-batch: 3 samples. Gradients add up. */
static void micro_step(struct accel_run *run, int64_t position) {
  load_batch(run, ACCEL_TRAIN, position * 3);
  forward();
  report.loss += arena->result[0];
  backward();
}

/* One micro-batch: 3 samples. Gradients become those of all ranks. */
static void last_micro_step(struct accel_run *run, int64_t position) {
  load_batch(run, ACCEL_TRAIN, position * 3);
  forward();
  report.loss += arena->result[0];
  last_backward();
  accel_wait_collectives();
}

/* One optimizer step: 2 micro-batches of each rank, or those that are left of the epoch. */
static void step(struct accel_run *run, int64_t at) {
  const struct accel_micro_batches micro_batches = accel_micro_batches_of(run, at);
  memset(arena->whole_gradients, 0, sizeof arena->whole_gradients);
  report.loss = 0.0;
  for (int64_t i = 0; i < micro_batches.count - 1; i++) micro_step(run, micro_batches.first + i);
  last_micro_step(run, micro_batches.first + micro_batches.count - 1);
  accel_all_reduce_doubles(ACCEL_DP_SHARD, &report.loss, 1);
  report.loss /= 2.0 * (double)micro_batches.count;
  report.lr = learning_rate();
  report.grad_norm = gradient_norm();
  accel_require_finite_loss(run, at, report.loss);
  accel_require_finite_norm(run, at, report.grad_norm);
  update(at, report.lr);
  gather_weights();
}

/* The parameters by their published names: where they are, how they start, their shape. */
#define PARAMETER(name, member, init, a, b, rank, ...)                                                                 \
  {name, offsetof(struct model_weights, member), rank, {__VA_ARGS__}, ACCEL_##init, a, b, ACCEL_FLOAT32}
static const struct accel_tensor tensors[] = {
    PARAMETER("output.weight", output_weight, UNIFORM, -0.3779644730092272, 0.3779644730092272, 2, 3, 7),
    PARAMETER("output.bias", output_bias, UNIFORM, -0.3779644730092272, 0.3779644730092272, 1, 3),
    PARAMETER("hidden.0.weight", hidden_0.weight, UNIFORM, -0.4472135954999579, 0.4472135954999579, 2, 7, 5),
    PARAMETER("hidden.0.bias", hidden_0.bias, UNIFORM, -0.4472135954999579, 0.4472135954999579, 1, 7),
    PARAMETER("hidden.1.weight", hidden_1.weight, UNIFORM, -0.3779644730092272, 0.3779644730092272, 2, 7, 7),
    PARAMETER("hidden.1.bias", hidden_1.bias, UNIFORM, -0.3779644730092272, 0.3779644730092272, 1, 7),
};

/* What outlives a step: its file in a checkpoint and its name there, where it is. */
static const struct accel_state states[] = {
    {"model", "", ACCEL_FLOAT32, offsetof(struct arena, weights), 192, NULL, 0},
    {"optimizer", "momentum_buffer", ACCEL_FLOAT32, offsetof(struct arena, moment_1), 112, NULL, 0},
};

/* What ranks divide, row by row: where it begins in the whole, how many each rank has of it and how many the last one,
 * and where these begin in a rank's own. */
static const struct accel_row rows[] = {
    /* output.weight */
    {0, 16, 32, 0},
    /* hidden.0.weight */
    {48, 64, 80, 32},
};

/* The keys of the job that differ from the defaults of accel-gen 0.2.0, a digest of the model's C, and whether the key
 * may change when the run is continued. The digests below are of all keys. */
static const struct accel_key keys[] = {
    {"model.source", "mlp_table.c", true},
    {"model.config.n_layer", "2", false},
    {"model.config.width", "7", false},
    {"model.config.n_classes", "3", false},
    {"data.train.path", "rows.csv", true},
    {"data.train.format", "csv", true},
    {"data.batch_size", "3", true},
    {"data.features", "5", false},
    {"accumulation.num_steps", "2", true},
    {"devices.per_node", "2", true},
    {"parallelism.zero_stage", "1", true},
    {"optimizer.name", "sgd", false},
    {"optimizer.weight_decay", "0.0", false},
    {"optimizer.momentum", "0.9", false},
    {"training.steps", "3", true},
    {"training.seed", "11", false},
    {"checkpoint.project_dir", "run", true},
    {"the model's C", "ebc4564034da0194", true},
};

static const struct accel_program program = {
    .name = "mlp_table",
    .summary = "0.00 M parameters, float32",
    .job_digest = "fd6dd56f5d0c2e3a338fc11a460656535e6463bf43468c747c216b3d15309192",
    .fixed_digest = "7402b0e01daaa049",
    .generator = "accel-gen 0.2.0",
    .plan =
        "model     mlp_table.c: 122 parameters\n"
        "step      12 rows, 3.86 kFLOP (matmuls 87 %)\n"
        "memory    0.0 MiB: weights 0.0, gradients 0.0, optimizer 0.0, activations 0.0, scratch 0.0\n"
        "process   outside the arena: 0.8 KiB a rank for exchanges within a machine; libraries and MPI, some 30 MiB\n"
        "traffic   1.5 KiB a step from each of 2 ranks, in 6 collectives\n",
    .job_file = "job.yaml",
    .steps = 3,
    .seed = 11,
    .data_seed = 11,
    .batch_size = 3,
    .micro_batches = 2,
    .sync_with_dataloader = true,
    .tensors = tensors,
    .n_tensors = 6,
    .states = states,
    .n_states = 2,
    .keys = keys,
    .n_keys = sizeof keys / sizeof *keys,
    .matmul_flops = 3360.0,
    .weights_bytes = sizeof(struct model_weights),
    .arena_bytes = sizeof(struct arena),
    .processor = ACCEL_PROCESSOR,
    .mesh = {[ACCEL_DP_SHARD] = 2},
    .timeout = 600,
    .summed = {offsetof(struct arena, whole_gradients), sizeof arena->whole_gradients},
    .sharding = {.rows = rows, .n_rows = 2, .whole = 192, .first_state = 1, .n_states = 1},
    .source = {{"rows.csv", ACCEL_CSV}},
    .eval_fraction = 0.1,
    .shuffle = true,
    .prefetch = 2,
    .no_target = -100,
    .inputs = inputs,
    .n_inputs = 2,
    .log_every = 10,
    .eval_iters = 20,
    .checkpoint.automatic_naming = true,
    .checkpoint.max_shard_bytes = 10000000000,
    .checkpoint.resume = "never",
    .checkpoint.saves_on_signal = true,
    .project_dir = "run",
};

/* A function of its own, so that the start looks at the processor before the first instruction that it may lack. */
static __attribute__((noinline)) int train(struct accel_run *run) {
  shard = (size_t)accel_rank_along(run, ACCEL_DP_SHARD);
  is_last = shard == 1;
  arena = accel_arena(run);
  accel_fill_weights(run, &arena->weights);
  int64_t at = accel_first_step(run);
  while (at < accel_steps(run)) {
    const int64_t until = accel_next_event(run, at);
    for (; at < until; at++) step(run, at);
    accel_check(accel_gemm_status, "oneDNN could not multiply matrices");
    accel_handle_events(run, at, report);
  }
  return accel_finish(run);
}

int main(int argc, char **argv) {
  return train(accel_start(&program, argc, argv));
}
