/* mlp_table: a training program for one job, written by accel-gen 0.2.0. This is what the host does; its
 * kernels are in the file of the same name that ends with .cu.
 *
 * job       job.yaml, d014194e3da09b55c360cf58bb622fd4b7fdb1c4cca4b6ccff50bd8e1063561f
 * model     mlp_table.c: 122 parameters
 * step      3 rows, 1.93 kFLOP (matmuls 87 %)
 * memory    48.0 MiB: weights 0.0, gradients 0.0, optimizer 0.0, activations 0.0, scratch 48.0
 * traffic   none (1 rank)
 *
 * Build: accel-gen build. */
#include <accel/gpu/device.h>
#include <accel/gpu/gemm.h>
#include <accel/gpu/report.h>
#include <accel/trainer.h>
#include <assert.h>
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

/* A micro-batch, on its way to the device. */
struct feed {
  alignas(64) float features[3 * 5];
  alignas(64) int32_t labels[3];
};

/* The arrays that an update goes through, all on the device. */
struct arrays {
  float *all_weights, *all_gradients;
  float *moment_1;
  float *moment_2;
};

/* What is on the device. The host has what outlives a step too, at the same offsets. */
struct arena {
  union {
    struct model_weights weights;
    float all_weights[192];
  };
  union {
    struct model_weights gradients;
    float all_gradients[192];
  };
  float moment_1[192];
  float moment_2[192];
  union {
    struct feed feed;
    struct {
      alignas(64) float features[3 * 5];
      alignas(64) int32_t labels[3];
    };
  };
  alignas(64) float result[1]; /* the loss */
  union {
    struct progress progress;
    alignas(64) char progress_bytes[256];
  };
  struct model_saved saved;
  union {
    struct model_backward_scratch backward;
  } scratch;
  alignas(64) float sums[4194304];      /* of kernels, before they are added up */
  alignas(64) char workspace[33554624]; /* of the libraries */
};
static_assert(sizeof(struct arena) == 50336320, "as planned");

/* A device's address: the host passes it on and never dereferences it. */
static struct arena *arena;

/* ---- Kernels ---- */

/* y = a b: [3][5] x [5][7]; y = a b + bias. */
ACCEL_GPU_GEMM(matmul_bias_nt_3x5x7, F32, F32, BIAS, 3, 7, 5, 7, 5, 1, 1, 5);
static void matmul_bias_nt_3x5x7(float *y, const float *a, const float *b, const float *bias) {
  accel_gpu_multiply(&matmul_bias_nt_3x5x7_gemm, accel_gpu_stream(ACCEL_COMPUTE), y, a, b, (void *)bias, NULL);
}

void relu_3x7(float *y, const float *x);
/* y = a b: [3][7] x [7][7]; y = a b + bias. */
ACCEL_GPU_GEMM(matmul_bias_nt_3x7, F32, F32, BIAS, 3, 7, 7, 7, 7, 1, 1, 7);
static void matmul_bias_nt_3x7(float *y, const float *a, const float *b, const float *bias) {
  accel_gpu_multiply(&matmul_bias_nt_3x7_gemm, accel_gpu_stream(ACCEL_COMPUTE), y, a, b, (void *)bias, NULL);
}

/* y = a b: [3][7] x [7][3]; y = a b + bias. */
ACCEL_GPU_GEMM(matmul_bias_nt_3x7x3, F32, F32, BIAS, 3, 3, 7, 3, 7, 1, 1, 7);
static void matmul_bias_nt_3x7x3(float *y, const float *a, const float *b, const float *bias) {
  accel_gpu_multiply(&matmul_bias_nt_3x7x3_gemm, accel_gpu_stream(ACCEL_COMPUTE), y, a, b, (void *)bias, NULL);
}

void cross_entropy_3x3(float *loss, float *lse, float *scale, const float *logits, const int32_t *targets);
void relu_backward_3x7(float *y, const float *x0, const float *x1);
/* y^T = b^T a^T: [7][3] x [3][5]; d_bias = the sum of b's rows. */
ACCEL_GPU_GEMM(matmul_sum_tn_5x3x7, F32, F32, SUM_A, 7, 5, 3, 5, 1, 7, 5, 1);
static void matmul_sum_tn_5x3x7(float *y, float *d_bias, const float *a, const float *b) {
  accel_gpu_multiply(&matmul_sum_tn_5x3x7_gemm, accel_gpu_stream(ACCEL_COMPUTE), y, b, a, d_bias, NULL);
}

/* y = a b: [3][7] x [7][7]. */
ACCEL_GPU_GEMM(matmul_3x7, F32, F32, PLAIN, 3, 7, 7, 7, 7, 1, 7, 1);
static void matmul_3x7(float *y, const float *a, const float *b) {
  accel_gpu_multiply(&matmul_3x7_gemm, accel_gpu_stream(ACCEL_COMPUTE), y, a, b, NULL, NULL);
}

/* y^T = b^T a^T: [7][3] x [3][7]; d_bias = the sum of b's rows. */
ACCEL_GPU_GEMM(matmul_sum_tn_7x3x7, F32, F32, SUM_A, 7, 7, 3, 7, 1, 7, 7, 1);
static void matmul_sum_tn_7x3x7(float *y, float *d_bias, const float *a, const float *b) {
  accel_gpu_multiply(&matmul_sum_tn_7x3x7_gemm, accel_gpu_stream(ACCEL_COMPUTE), y, b, a, d_bias, NULL);
}

/* y = a b: [3][3] x [3][7]. */
ACCEL_GPU_GEMM(matmul_3x3x7, F32, F32, PLAIN, 3, 7, 3, 7, 3, 1, 7, 1);
static void matmul_3x3x7(float *y, const float *a, const float *b) {
  accel_gpu_multiply(&matmul_3x3x7_gemm, accel_gpu_stream(ACCEL_COMPUTE), y, a, b, NULL, NULL);
}

/* y^T = b^T a^T: [3][3] x [3][7]; d_bias = the sum of b's rows. */
ACCEL_GPU_GEMM(matmul_sum_tn_7x3, F32, F32, SUM_A, 3, 7, 3, 7, 1, 3, 7, 1);
static void matmul_sum_tn_7x3(float *y, float *d_bias, const float *a, const float *b) {
  accel_gpu_multiply(&matmul_sum_tn_7x3_gemm, accel_gpu_stream(ACCEL_COMPUTE), y, b, a, d_bias, NULL);
}

void constant_1(float *y);
void cross_entropy_backward_1(float *dlogits, const float *d_loss, const float *logits, const float *lse,
                              const float *scale, const int32_t *targets);
/* The loss of the micro-batch at hand goes into the step's. */
void note_loss(struct progress *progress, const float *result);

/* Adds up the squares of the gradients, in chunks, so that their sum is the same in every run. */
void sum_squares(const float *gradients);

/* Prepares the update: the loss of the step, the norm of its gradient, whether there is an update, its learning rate
 * and factor; these are the report of the step, too. */
void prepare_update(struct progress *progress);

/* Updates the weights. */
void update(const struct arrays *arena, const struct progress *progress);

/* Where kernels keep partial sums. */
void open_kernels(float *sums);

/* ---- The model, function by function ---- */

/* hidden, mlp_table.c:13. */
static void hidden_forward(const struct hidden_weights *weights, struct hidden_saved *saved, float *relu,
                           const float *x) {
  matmul_bias_nt_3x5x7(saved->add, x, weights->weight, weights->bias);
  relu_3x7(relu, saved->add);
}

/* hidden, mlp_table.c:13. */
static void hidden_2_forward(const struct hidden_2_weights *weights, struct hidden_2_saved *saved, float *relu,
                             const float *x) {
  matmul_bias_nt_3x7(saved->add, x, weights->weight, weights->bias);
  relu_3x7(relu, saved->add);
}

/* predict, mlp_table.c:18. */
static void predict_forward(const struct model_weights *weights, struct predict_saved *saved, float *add,
                            const float *features) {
  hidden_forward(&weights->hidden_0, &saved->hidden, saved->x, features);
  hidden_2_forward(&weights->hidden_1, &saved->hidden_2, saved->x_2, saved->x);
  matmul_bias_nt_3x7x3(add, saved->x_2, weights->output_weight, weights->output_bias);
}

/* model, mlp_table.c:24. */
static void model_forward(const struct model_weights *weights, struct model_saved *saved, float *cross_entropy,
                          const float *features, const int32_t *labels) {
  predict_forward(weights, &saved->predict_saved, saved->predict, features);
  cross_entropy_3x3(cross_entropy, saved->cross_entropy_lse, saved->cross_entropy_scale, saved->predict, labels);
}

/* Gradient of hidden, mlp_table.c:13. */
static void hidden_backward(struct hidden_weights *gradients, struct hidden_saved *saved, const float *d_relu,
                            const float *x) {
  relu_backward_3x7(saved->add, d_relu, saved->add);
  matmul_sum_tn_5x3x7(gradients->weight, gradients->bias, x, saved->add);
}

/* Gradient of hidden, mlp_table.c:13. */
static void hidden_2_backward(const struct hidden_2_weights *weights, struct hidden_2_weights *gradients,
                              struct hidden_2_saved *saved, float *d_x, const float *d_relu, const float *x) {
  relu_backward_3x7(saved->add, d_relu, saved->add);
  matmul_3x7(d_x, saved->add, weights->weight);
  matmul_sum_tn_7x3x7(gradients->weight, gradients->bias, x, saved->add);
}

/* Gradient of predict, mlp_table.c:18. */
static void predict_backward(const struct model_weights *weights, struct model_weights *gradients,
                             struct predict_saved *saved, struct predict_backward_scratch *scratch, const float *d_add,
                             const float *features) {
  matmul_3x3x7(scratch->d_x_2, d_add, weights->output_weight);
  matmul_sum_tn_7x3(gradients->output_weight, gradients->output_bias, saved->x_2, d_add);
  hidden_2_backward(&weights->hidden_1, &gradients->hidden_1, &saved->hidden_2, scratch->d_x, scratch->d_x_2, saved->x);
  hidden_backward(&gradients->hidden_0, &saved->hidden, scratch->d_x, features);
}

/* Gradient of model, mlp_table.c:24. */
static void model_backward(const struct model_weights *weights, struct model_weights *gradients,
                           struct model_saved *saved, struct model_backward_scratch *scratch, const int32_t *labels,
                           const float *features) {
  constant_1(scratch->d_cross_entropy);
  cross_entropy_backward_1(saved->predict, scratch->d_cross_entropy, saved->predict, saved->cross_entropy_lse,
                           saved->cross_entropy_scale, labels);
  predict_backward(weights, gradients, &saved->predict_saved, &scratch->predict_backward, saved->predict, features);
}

/* ---- Training ---- */

/* The batch at hand gives its loss, in arena->result. */
static void forward(void) {
  model_forward(&arena->weights, &arena->saved, arena->result, arena->features, arena->labels);
}

/* The gradients of that loss. */
static void backward(void) {
  model_backward(&arena->weights, &arena->gradients, &arena->saved, &arena->scratch.backward, arena->labels,
                 arena->features);
}

/* The report of the newest step that the host has read, for the log. */
static struct accel_report report;

/* What follows the last gradients of a step. */
static void end_step(void) {
  sum_squares(arena->all_gradients);
  prepare_update(&arena->progress);
  const struct arrays arrays = {
      .all_weights = arena->all_weights,
      .all_gradients = arena->all_gradients,
      .moment_1 = arena->moment_1,
      .moment_2 = arena->moment_2,
  };
  update(&arrays, &arena->progress);
}

/* One micro-batch: 3 samples. And the end of the step. */
static void last_micro_step(void) {
  forward();
  note_loss(&arena->progress, arena->result);
  backward();
  end_step();
}

/* The work of it, recorded once. */
static struct accel_graph *last_graph;

/* Steps resume at step `at`. */
static void open_steps(int64_t at) {
  const struct progress progress = {.at = at};
  accel_gpu_write(&arena->progress, &progress, sizeof progress);
  last_graph = accel_gpu_capture("last_micro_step", last_micro_step);
}

/* Reads the report that was sent `age` steps before the newest one. */
static void look(struct accel_run *run, int age) {
  accel_gpu_look(run, &report, age, ACCEL_STOPS);
}

/* Sends a batch on its way. */
static const struct feed *load_batch(struct accel_run *run, enum accel_split split, int64_t position) {
  struct feed *feed = accel_gpu_feed_begin();
  accel_load_input(run, split, position, 3, &inputs[0], feed->features);
  accel_load_input(run, split, position, 3, &inputs[1], feed->labels);
  accel_gpu_feed_send();
  accel_gpu_feed_take();
  return feed;
}

/* Sends a micro-batch on its way and has it worked on. */
static void send_batch(struct accel_run *run, int64_t position, const struct accel_graph *graph) {
  load_batch(run, ACCEL_TRAIN, position);
  accel_gpu_launch(graph);
}

/* One optimizer step: 3 samples. The host continues while the device works. */
static void step(struct accel_run *run, int64_t at) {
  send_batch(run, at * 3, last_graph);
  accel_gpu_report_send();
  look(run, 2);
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
    {"optimizer", "exp_avg", ACCEL_FLOAT32, offsetof(struct arena, moment_1), 192, NULL, 0},
    {"optimizer", "exp_avg_sq", ACCEL_FLOAT32, offsetof(struct arena, moment_2), 192, NULL, 0},
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
    {"devices.kind", "cuda", true},
    {"optimizer.betas", "[0.9, 0.95]", false},
    {"optimizer.weight_decay", "0.1", false},
    {"optimizer.clip_grad_norm", "1.0", false},
    {"training.steps", "3", true},
    {"training.seed", "11", false},
    {"checkpoint.project_dir", "run", true},
    {"the model's C", "ebc4564034da0194", true},
};

static const struct accel_program program = {
    .name = "mlp_table",
    .summary = "0.00 M parameters, float32",
    .job_digest = "d014194e3da09b55c360cf58bb622fd4b7fdb1c4cca4b6ccff50bd8e1063561f",
    .fixed_digest = "1c6efb76831c1941",
    .generator = "accel-gen 0.2.0",
    .plan = "model     mlp_table.c: 122 parameters\n"
            "step      3 rows, 1.93 kFLOP (matmuls 87 %)\n"
            "memory    48.0 MiB: weights 0.0, gradients 0.0, optimizer 0.0, activations 0.0, scratch 48.0\n"
            "traffic   none (1 rank)\n",
    .job_file = "job.yaml",
    .steps = 3,
    .seed = 11,
    .data_seed = 11,
    .batch_size = 3,
    .micro_batches = 1,
    .tensors = tensors,
    .n_tensors = 6,
    .states = states,
    .n_states = 3,
    .keys = keys,
    .n_keys = sizeof keys / sizeof *keys,
    .matmul_flops = 1680.0,
    .weights_bytes = sizeof(struct model_weights),
    .arena_bytes = offsetof(struct arena, feed),
    .device_bytes = sizeof(struct arena),
    .processor = ACCEL_PROCESSOR,
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

/* The kernels' targets, and the arena as the runtime must know it. */
static const char *const architectures[] = {"sm_80", "sm_90a", "sm_100", NULL};
static const struct accel_gpu_plan device = {
    .architectures = architectures,
    .arena_bytes = sizeof(struct arena),
    .workspace_offset = offsetof(struct arena, workspace),
    .workspace_bytes = sizeof((struct arena *)0)->workspace,
    .feed_offset = offsetof(struct arena, feed),
    .feed_bytes = sizeof(struct feed),
    .report_offset = offsetof(struct arena, progress.report),
    .report_bytes = sizeof(struct step_report),
    .ahead = 3,
    .deterministic = false,
};

int main(int argc, char **argv) {
  struct accel_run *run = accel_start(&program, argc, argv);
  struct arena *mirror = accel_arena(run);
  accel_gpu_open(&program, &device);
  arena = accel_gpu_arena();
  accel_gpu_open_gemm(&matmul_bias_nt_3x5x7_gemm);
  accel_gpu_open_gemm(&matmul_bias_nt_3x7_gemm);
  accel_gpu_open_gemm(&matmul_bias_nt_3x7x3_gemm);
  accel_gpu_open_gemm(&matmul_sum_tn_5x3x7_gemm);
  accel_gpu_open_gemm(&matmul_3x7_gemm);
  accel_gpu_open_gemm(&matmul_sum_tn_7x3x7_gemm);
  accel_gpu_open_gemm(&matmul_3x3x7_gemm);
  accel_gpu_open_gemm(&matmul_sum_tn_7x3_gemm);
  open_kernels(arena->sums);
  accel_fill_weights(run, &mirror->weights);
  accel_gpu_send_states(run);
  int64_t at = accel_first_step(run);
  open_steps(at);
  while (at < accel_steps(run)) {
    const int64_t until = accel_next_event(run, at);
    for (; at < until; at++) step(run, at);
    look(run, 0);
    if (accel_save_is_due(run, at)) accel_gpu_fetch_states(run);
    accel_handle_events(run, at, report);
  }
  accel_gpu_close();
  return accel_finish(run);
}
