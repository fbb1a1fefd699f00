#include <accel/trainer.h>
struct pair {
  float a[4];
  int32_t n;
};
struct arena {
  float weights[8];
  struct pair pairs[4];
  float table[6 * 4];
  int64_t numbers[8];
};
static struct arena *arena;

static void kernel(float y[static 4], const float x[static 4], int64_t at) {
  for (int64_t i = 0; i < 4; i++) y[i] = x[i + at];
  if (at != 0) y[at] = x[at - 1];
}

static void step(struct accel_run *run, int64_t at) {
  accel_load_sequences(run, ACCEL_TRAIN, at, 1, (int32_t *)arena->numbers, (int32_t *)arena->numbers);
  for (int64_t r = 0; r < 8; r++) {
    int64_t position = arena->numbers[r];
    struct pair *pair = &arena->pairs[position];
    struct pair copy = *pair;
    pair->a[position] = copy.a[0];
    memcpy(arena->table + position * 4, pair->a, sizeof pair->a);
    kernel(pair->a, arena->table + position * 4, position - 1);
    if (position < -1 || position > 3) continue;
    arena->weights[position] += pair->n;
  }
}

static const struct accel_program program = {.weights_bytes = 8 * sizeof(float), .arena_bytes = sizeof(struct arena)};

int main(int argc, char **argv) {
  struct accel_run *run = accel_start(&program, argc, argv);
  arena = accel_arena(run);
  for (int64_t at = 0; at < accel_steps(run); at++) step(run, at);
  return accel_finish(run);
}
