/* What an emitted trainer does with the runtime, around a model so small that it is written by hand: the frequency of
 * each byte. Its loss is the windows' cross-entropy, so it falls and is checked by tests. Tests set what a job would
 * set by environment variables (FAKE_…). */
#include "include/accel/trainer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LENGTH = 32, BATCH = 4, VOCABULARY = 256 };

static const struct accel_tensor tensors[] = {
    {"bias", 0, 1, {VOCABULARY}, ACCEL_ZEROS, 0, 0, ACCEL_FLOAT32},
    {"noise.weight", VOCABULARY * sizeof(float), 2, {8, 6}, ACCEL_NORMAL, 0, 0.02, ACCEL_FLOAT32},
};

struct arena {
  float bias[VOCABULARY], noise[8][6], speed[VOCABULARY + 48];
  int32_t tokens[BATCH][LENGTH], targets[BATCH][LENGTH];
  _Alignas(64) char copy[4096];
};

static struct arena *arena;

static int64_t number(const char *name, int64_t fallback) {
  const char *text = getenv(name);
  return text != NULL ? strtoll(text, NULL, 10) : fallback;
}

static double real(const char *name) {
  const char *text = getenv(name);
  return text != NULL ? strtod(text, NULL) : 0;
}

static double loss_and_gradient(double gradient[VOCABULARY]) {
  double total = 0, loss = 0;
  for (int i = 0; i < VOCABULARY; i++) total += exp(arena->bias[i]);
  for (int i = 0; i < VOCABULARY; i++) gradient[i] = exp(arena->bias[i]) / total;
  for (int b = 0; b < BATCH; b++)
    for (int t = 0; t < LENGTH; t++) {
      loss -= (arena->bias[arena->targets[b][t]] - log(total)) / (BATCH * LENGTH);
      gradient[arena->targets[b][t]] -= 1.0 / (BATCH * LENGTH);
    }
  return loss;
}

static struct accel_report step(struct accel_run *run, int64_t at) {
  double gradient[VOCABULARY], norm = 0;
  accel_load_sequences(run, ACCEL_TRAIN, at * BATCH, BATCH, arena->tokens[0], arena->targets[0]);
  double loss = loss_and_gradient(gradient);
  for (int i = 0; i < VOCABULARY; i++) {
    norm += gradient[i] * gradient[i];
    arena->speed[i] = 0.5f * arena->speed[i] + (float)gradient[i];
    arena->bias[i] -= 3 * arena->speed[i];
  }
  if (at + 1 == number("FAKE_NAN_AT", -1)) loss = NAN;
  accel_require_finite_loss(run, at, loss);
  return (struct accel_report){.loss = loss, .lr = 5, .grad_norm = sqrt(norm)};
}

static double evaluate(struct accel_run *run) {
  const int64_t batches = accel_eval_begin(run);
  for (int64_t i = 0; i < batches; i++) {
    double gradient[VOCABULARY];
    accel_load_sequences(run, ACCEL_EVAL, i * BATCH, BATCH, arena->tokens[0], arena->targets[0]);
    accel_eval_add(run, i, loss_and_gradient(gradient), BATCH);
  }
  return accel_eval_loss(run);
}

static const struct accel_slice slices[] = {{0, 0, 0, 1, {VOCABULARY}}};
static const struct accel_state states[] = {
    {"model", "", ACCEL_FLOAT32, 0, VOCABULARY + 48, NULL, 0},
    {"optimizer", "momentum_buffer", ACCEL_FLOAT32, offsetof(struct arena, speed), VOCABULARY + 48, slices, 1},
};

static const char *text(const char *name, const char *fallback) {
  const char *given = getenv(name);
  return given != NULL ? given : fallback;
}

int main(int argc, char **argv) {
  const struct accel_key keys[] = {
      {"optimizer.name", text("FAKE_OPTIMIZER", "sgd"), false},
      {"optimizer.lr", text("FAKE_LR", "3.0"), true},
  };
  struct accel_program program = {
      .name = "fake",
      .summary = "1 layer, 304 parameters, float32",
      .job_digest = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
      .job_file = getenv("FAKE_JOB"),
      .generator = text("FAKE_GENERATOR", "accel-gen 0.1.0"),
      .plan = "model     fake: 304 parameters",
      .steps = number("FAKE_STEPS", 20),
      .seed = 1337,
      .data_seed = 1337,
      .batch_size = BATCH,
      .micro_batches = 1,
      .tensors = tensors,
      .n_tensors = 2,
      .states = states,
      .n_states = 2,
      .keys = keys,
      .n_keys = 2,
      .weights_bytes = (VOCABULARY + 48) * sizeof(float),
      .arena_bytes = sizeof *arena,
      .threads = (int)number("FAKE_THREADS", 0),
      .source = {{getenv("FAKE_TRAIN"), (enum accel_format)number("FAKE_FORMAT", ACCEL_BYTES)},
                 {getenv("FAKE_EVAL"), (enum accel_format)number("FAKE_FORMAT", ACCEL_BYTES)}},
      .eval_fraction = 0.1,
      .shuffle = true,
      .sequence_length = LENGTH,
      .vocabulary = number("FAKE_VOCABULARY", VOCABULARY),
      .log_every = number("FAKE_LOG_EVERY", 5),
      .eval_every = number("FAKE_EVAL_EVERY", 10),
      .save_every = number("FAKE_SAVE_EVERY", 0),
      .eval_iters = number("FAKE_EVAL_ITERS", 2),
      .checkpoint = {.automatic_naming = number("FAKE_NAMING", 1) != 0,
                     .minutes = real("FAKE_SAVE_MINUTES"),
                     .iteration = number("FAKE_ITERATION", 0),
                     .total_limit = number("FAKE_TOTAL_LIMIT", 0),
                     .max_shard_bytes = number("FAKE_SHARD_BYTES", 0),
                     .copy_offset = number("FAKE_BACKGROUND", 1) != 0 ? offsetof(struct arena, copy) : 0,
                     .resume = "never",
                     .saves_on_signal = number("FAKE_ON_SIGNAL", 1) != 0,
                     .outlives_errors = number("FAKE_OUTLIVES", 0) != 0},
      .project_dir = "runs/fake",
      .start = {.path = getenv("FAKE_WEIGHTS"),
                .prefix = getenv("FAKE_PREFIX"),
                .fresh = (const int[]){0, 1},
                .n_fresh = getenv("FAKE_FRESH") != NULL ? 2 : 0,
                .ignored = (const char *const[]){getenv("FAKE_IGNORED")},
                .n_ignored = getenv("FAKE_IGNORED") != NULL},
  };
  struct accel_run *run = accel_start(&program, argc, argv);
  arena = accel_arena(run);
  accel_fill_weights(run, arena->bias);
  int64_t at = accel_first_step(run);
  struct accel_report report = {0};
  while (at < accel_steps(run)) {
    int64_t until = accel_next_event(run, at);
    for (; at < until; at++) report = step(run, at);
    if (accel_eval_is_due(run, at)) accel_report_eval(run, at, evaluate(run));
    accel_handle_events(run, at, report);
  }
  return accel_finish(run);
}
