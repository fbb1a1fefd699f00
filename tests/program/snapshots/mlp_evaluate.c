/* mlp_table: a program that measures one trained model, written by accel-gen 0.1.0.
 *
 * job    job.yaml, a46b6aac76445b344caffc4d54d6d27acea6f16e3891d32fafd352f089216ead
 * model     mlp_table.c: 122 parameters
 * batch     3 rows, 768 FLOP (products 82 %)
 * memory    0.0 MiB: weights 0.0, scratch 0.0
 * traffic   none (1 rank)
 *
 * Build: cc -std=c17 -O3 -march=native -fopenmp evaluate.c -o evaluate $(pkg-config --cflags --libs accel-runtime) */
#include <accel/evaluator.h>
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

/* What predict_forward needs while it runs. */
struct predict_forward_scratch {
  alignas(64) float x[3 * 7];
  alignas(64) float x_2[3 * 7];
};
static_assert(sizeof(struct predict_forward_scratch) == 256, "as planned");

/* What model_forward needs while it runs; members of a union are never in use together. */
struct model_forward_scratch {
  alignas(64) float predict[3 * 3];
  alignas(64) float cross_entropy_scale[1];
  union {
    alignas(64) float cross_entropy_lse[3];
    struct predict_forward_scratch predict_forward;
  };
};
static_assert(sizeof(struct model_forward_scratch) == 384, "as planned");

struct arena {
  struct model_weights weights;
  alignas(64) float features[3 * 5];
  alignas(64) int32_t labels[3];
  alignas(64) int32_t predictions[3];
  alignas(64) float result[1]; /* the loss */
  struct {
    struct model_forward_scratch forward;
  } scratch;
};
static_assert(sizeof(struct arena) == 1408, "as planned");

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

/* y = a b: [3][5] x [5][7]. */
static void matmul_3x5x7(float y[static 3 * 7], const float a[static 3 * 5], const float b[static 35]) {
  accel_product('N', 'T', 3, 7, 5, a, 5, b, 5, 0.0f, y, 7);
}

static void add_relu_3x7(float y[static 3 * 7], const float x0[static 3 * 7], const float x1[static 7]) {
  for (size_t i = 0; i < 3; i++)
#pragma omp simd
    for (size_t j = 0; j < 7; j++) {
      const float v0 = x0[i * 7 + j];
      const float v1 = x1[j];
      const float t0 = v0 + v1;
      const float t1 = t0 < 0.0f ? 0.0f : t0;
      y[i * 7 + j] = t1;
    }
}

/* y = a b: [3][7] x [7][7]. */
static void matmul_3x7(float y[static 3 * 7], const float a[static 3 * 7], const float b[static 49]) {
  accel_product('N', 'T', 3, 7, 7, a, 7, b, 7, 0.0f, y, 7);
}

/* y = a b: [3][7] x [7][3]. */
static void matmul_3x7x3(float y[static 3 * 3], const float a[static 3 * 7], const float b[static 21]) {
  accel_product('N', 'T', 3, 3, 7, a, 7, b, 7, 0.0f, y, 3);
}

static void add_3x3(float y[static 3 * 3], const float x0[static 3 * 3], const float x1[static 3]) {
  for (size_t i = 0; i < 3; i++)
#pragma omp simd
    for (size_t j = 0; j < 3; j++) {
      const float v0 = x0[i * 3 + j];
      const float v1 = x1[j];
      const float t0 = v0 + v1;
      y[i * 3 + j] = t0;
    }
}

/* loss = the mean of lse[r] - logits[r][targets[r]] over the targets that are not -100; lse = ln sum e^logits. */
static void cross_entropy_3x3(float loss[static 1], float lse[static 3], float scale[static 1],
                              const float logits[static 3 * 3], const int32_t targets[static 3]) {
  double losses[1];
  int counts[1];
  for (size_t chunk = 0; chunk < 1; chunk++) {
    losses[chunk] = 0.0;
    counts[chunk] = 0;
    for (size_t r = chunk * 8; r < (chunk + 1 == 1 ? 3 : (chunk + 1) * 8); r++) {
      const float *x = logits + r * 3;
      const float highest = accel_max(x, 3);
      float sum = 0.0f;
#pragma omp simd reduction(+ : sum)
      for (size_t v = 0; v < 3; v++) sum += accel_exp(x[v] - highest);
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

/* y[r] = the index of the largest of x[r][:], the first of equal ones. */
static void predict_class_3x3(int32_t y[static 3], const float x[static 3 * 3]) {
#pragma omp parallel for
  for (size_t r = 0; r < 3; r++) {
    const float *row = x + r * 3;
    float highest = row[0];
    int32_t best = 0;
    for (int32_t v = 1; v < 3; v++) {
      const float here = row[v];
      best = here > highest ? v : best;
      highest = here > highest ? here : highest;
    }
    y[r] = best;
  }
}

/* ---- The model, function by function ---- */

/* hidden, mlp_table.c:13. */
static void hidden_forward(const struct hidden_weights *weights, float relu[static 3 * 7],
                           const float x[static 3 * 5]) {
  matmul_3x5x7(relu, x, weights->weight);
  add_relu_3x7(relu, relu, weights->bias);
}

/* hidden, mlp_table.c:13. */
static void hidden_2_forward(const struct hidden_2_weights *weights, float relu[static 3 * 7],
                             const float x[static 3 * 7]) {
  matmul_3x7(relu, x, weights->weight);
  add_relu_3x7(relu, relu, weights->bias);
}

/* predict, mlp_table.c:18. */
static void predict_forward(const struct model_weights *weights, struct predict_forward_scratch *scratch,
                            float add[static 3 * 3], const float features[static 3 * 5]) {
  hidden_forward(&weights->hidden_0, scratch->x, features);
  hidden_2_forward(&weights->hidden_1, scratch->x_2, scratch->x);
  matmul_3x7x3(add, scratch->x_2, weights->output_weight);
  add_3x3(add, add, weights->output_bias);
}

/* model, mlp_table.c:24. */
static void model_forward(const struct model_weights *weights, struct model_forward_scratch *scratch,
                          float cross_entropy[static 1], int32_t predictions[static 3],
                          const float features[static 3 * 5], const int32_t labels[static 3]) {
  predict_forward(weights, &scratch->predict_forward, scratch->predict, features);
  cross_entropy_3x3(cross_entropy, scratch->cross_entropy_lse, scratch->cross_entropy_scale, scratch->predict, labels);
  predict_class_3x3(predictions, scratch->predict);
}

/* ---- Measuring ---- */

static void load_batch(struct accel_run *run, enum accel_split split, int64_t position) {
  accel_load_classes(run, split, position, 3, arena->features, arena->labels);
}

/* The batch at hand gives its loss, in arena->result, and its predictions. */
static void forward(void) {
  model_forward(&arena->weights, &arena->scratch.forward, arena->result, arena->predictions, arena->features,
                arena->labels);
}

/* How often each class was the label, was predicted, and was both. */
static struct accel_class classes[3];

/* The mean loss over 20 batches of the evaluation split, the same ones each time. */
static double evaluate(struct accel_run *run) {
  struct accel_score score = accel_score_of(classes, 3);
  double sum = 0.0;
  for (int64_t i = 0; i < 20; i++) {
    load_batch(run, ACCEL_EVAL, i * 3);
    forward();
    sum += arena->result[0];
    accel_score(&score, arena->predictions, arena->labels, 3);
  }
  const double loss = sum / 20.0;
  accel_report_metric(run, "accuracy", accel_accuracy(&score));
  return loss;
}

/* The parameters by their published names: where they lie, how they start, their shape. */
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

/* Tensors there that may be extra. */
static const char *const ignored[] = {
    "*",
};

static const struct accel_program program = {
    .name = "mlp_table",
    .summary = "0.00 M parameters, float32",
    .job_digest = "a46b6aac76445b344caffc4d54d6d27acea6f16e3891d32fafd352f089216ead",
    .generator = "accel-gen 0.1.0",
    .plan = "model     mlp_table.c: 122 parameters\n"
            "batch     3 rows, 768 FLOP (products 82 %)\n"
            "memory    0.0 MiB: weights 0.0, scratch 0.0\n"
            "traffic   none (1 rank)\n",
    .steps = 3,
    .seed = 11,
    .data_seed = 11,
    .batch_size = 3,
    .micro_batches = 1,
    .sync_with_dataloader = false,
    .tensors = tensors,
    .n_tensors = 6,
    .weights_bytes = sizeof(struct model_weights),
    .arena_bytes = sizeof(struct arena),
    .processor = ACCEL_PROCESSOR,
    .threads = 0,
    .source = {{"rows.csv", ACCEL_CSV}, {NULL, ACCEL_BYTES}},
    .eval_fraction = 0.1,
    .shuffle = true,
    .prefetch = 2,
    .no_target = -100,
    .sequence_length = 0,
    .vocabulary = 0,
    .features = 5,
    .label_is_class = true,
    .classes = 3,
    .log_every = 10,
    .eval_every = 1,
    .save_every = 0,
    .eval_iters = 20,
    .project_dir = "run",
    .start = {.path = NULL, .ignored = ignored, .n_ignored = 1},
};

/* A function of its own, so that the start looks at the processor before the first instruction that it may lack. */
static __attribute__((noinline)) int measure(struct accel_run *run) {
  arena = accel_arena(run);
  accel_evaluation_weights(run, &arena->weights);
  const double loss = evaluate(run);
  accel_check(product_status, "oneDNN could not multiply matrices");
  return accel_evaluation_finish(run, loss);
}

int main(int argc, char **argv) {
  return measure(accel_evaluation_start(&program, argc, argv));
}
