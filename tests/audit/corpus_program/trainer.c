#include <accel/trainer.h>
struct arena {
  float weights[6 * 4];
  float gradients[6 * 4];
  int32_t tokens[2 * 4];
  int32_t targets[2 * 4];
  float x[8 * 4];
  float y[8 * 4];
};
static struct arena *arena;

/* y[r][:] = weights[tokens[r]][:]. */
static void embed(float y[static 8 * 4], const float weights[static 6 * 4], const int32_t tokens[static 2 * 4]) {
  for (size_t r = 0; r < 8; r++)
    for (size_t c = 0; c < 4; c++) y[r * 4 + c] = weights[(size_t)tokens[r] * 4 + c];
}

static void kernel(float y[static 8 * 4], const float x[static 8 * 4]) {
  for (size_t i = 0; i < 32; i++) y[i] = x[i] > 0.0f ? x[i] : 0.0f;
}

static void backward(float gradients[static 6 * 4], const float y[static 8 * 4], const int32_t tokens[static 2 * 4]) {
  memset(gradients, 0, 24 * sizeof(float));
  for (size_t r = 0; r < 8; r++)
    for (size_t c = 0; c < 4; c++) gradients[(size_t)tokens[r] * 4 + c] += y[r * 4 + c];
}

static void step(struct accel_run *run, int64_t at) {
  accel_load_sequences(run, ACCEL_TRAIN, at * 2, 2, arena->tokens, arena->targets);
  embed(arena->x, arena->weights, arena->tokens);
  kernel(arena->y, arena->x);
  backward(arena->gradients, arena->y, arena->tokens);
  for (size_t i = 0; i < 24; i++) arena->weights[i] -= 0.1f * arena->gradients[i];
}

static const struct accel_program program = {
    .steps = 10,
    .weights_bytes = 6 * 4 * sizeof(float),
    .arena_bytes = sizeof(struct arena),
    .sequence_length = 4,
    .vocabulary = 6,
};

int main(int argc, char **argv) {
  struct accel_run *run = accel_start(&program, argc, argv);
  arena = accel_arena(run);
  accel_fill_weights(run, arena->weights);
  for (int64_t at = 0; at < accel_steps(run); at++) step(run, at);
  return accel_finish(run);
}
